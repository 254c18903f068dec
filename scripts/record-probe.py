#!/usr/bin/env python3
"""Checks `vramledger probe` and `report --live` on a machine with an NVIDIA GPU, and writes down what happened.

    python3 scripts/record-probe.py --binary target/release/vramledger --out fixtures/probe-h200

Wants Python 3.9 or later, nvidia-smi, a driver, and for the comparison with `torch.cuda.mem_get_info` PyTorch with CUDA. Takes
about a minute, and for a moment almost all memory of GPU 0: run it on an idle machine. Writes `transcript.txt` (every command with
its output, then every check with its figures), `checks.json`, `samples.ndjson` and `standin.log`; UUIDs become stand-ins. Exit
status 0 where every check holds.
"""

import argparse
import ctypes
import json
import os
import platform
import re
import signal
import subprocess
import sys
import time

MIB = 1 << 20
GIB = 1 << 30
# cudaMalloc hands out whole blocks of 2 MiB.
GRANULARITY = 2 * MIB

HOLDER = r"""
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        sys.exit(f"{name} failed: {code}")
device, context, at = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_uint64()
call("cuInit", 0)
call("cuDeviceGet", ctypes.byref(device), 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
print("context", flush=True)
for line in sys.stdin:
    size = int(line)
    if size == 0:
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        print(free.value, total.value, flush=True)
    else:
        call("cuMemAlloc_v2", ctypes.byref(at), ctypes.c_size_t(size))
        print("allocated", flush=True)
"""

TORCH = r"""
import sys, torch
torch.cuda.init()
kept = []
for line in sys.stdin:
    size = int(line)
    if size:
        kept.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    print(free, total, flush=True)
"""

# A server's memory steps with the words of SGLang 0.5.12, figures read from the driver as it reads them.
STANDIN = r"""
import sys, time, torch
log = open(sys.argv[1], "w")
def say(text):
    print(time.strftime("[%Y-%m-%d %H:%M:%S] ") + text, file=log, flush=True)
def avail():
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info()[0] / 2**30
torch.cuda.init()
kept = []
say("Init torch distributed begin.")
say("Init torch distributed ends. elapsed=0.01 s, mem usage=0.00 GB")
before = avail()
say(f"Load weight begin. avail mem={before:.2f} GB")
kept.append(torch.empty(15 * 2**30, dtype=torch.uint8, device="cuda"))
after = avail()
say(f"Load weight end. elapsed=0.10 s, type=LlamaForCausalLM, avail mem={after:.2f} GB, mem usage={before - after:.2f} GB.")
kept += [torch.empty(40 * 2**30, dtype=torch.uint8, device="cuda") for _ in "KV"]
say("KV Cache is allocated. #tokens: 655360, K size: 40.00 GB, V size: 40.00 GB")
say(f"Memory pool end. avail mem={avail():.2f} GB")
say(f"max_total_num_tokens=655360, chunked_prefill_size=8192, max_prefill_tokens=16384, max_running_requests=4096, "
    f"context_len=8192, available_gpu_mem={torch.cuda.mem_get_info()[0] / 2**30:.2f} GB")
say("The server is fired up and ready to roll!")
print("ready", flush=True)
for line in sys.stdin:
    kept.append(torch.empty(int(line), dtype=torch.uint8, device="cuda"))
    torch.cuda.synchronize()
    print("grown", flush=True)
"""


class Child:
    """A process of Python that is told what to do by lines."""

    def __init__(self, script, *arguments):
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.pid = self.process.pid

    def heard(self):
        line = self.process.stdout.readline().strip()
        if not line:
            raise RuntimeError("a helper process ended early")
        return line

    def tell(self, number):
        self.process.stdin.write(f"{number}\n")
        self.process.stdin.flush()
        return self.heard()

    def end(self):
        self.process.stdin.close()
        self.process.wait(timeout=60)


class Record:
    def __init__(self, binary, out):
        self.binary = os.path.abspath(binary)
        self.out = out
        self.checks = []
        os.makedirs(out, exist_ok=True)
        self.transcript = open(os.path.join(out, "transcript.txt"), "w")

    def write(self, text):
        text = re.sub(r"\b(GPU|MIG)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}",
                      r"\1-00000000-0000-4000-8000-000000000000", text)
        text = text.replace(self.binary, "vramledger").replace(self.out + os.sep, "")
        self.transcript.write(text + "\n")
        self.transcript.flush()
        print(text)

    def title(self, words):
        self.write(f"\n## {words}\n")

    def run(self, *command, show=True, environment=None):
        began = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "COLUMNS": "110", **(environment or {})})
        seconds = time.perf_counter() - began
        if show:
            before = "".join(f"{name}={value} " for name, value in (environment or {}).items())
            self.write(f"$ {before}{' '.join(command)}")
            self.write((done.stdout + done.stderr).rstrip())
            self.write(f"[exit {done.returncode}, {seconds * 1000:.0f} ms]")
        return done, seconds

    def probe(self, *arguments, show=False, environment=None):
        done, _ = self.run(self.binary, "probe", "--format", "json", *arguments, show=show, environment=environment)
        if done.returncode not in (0, 2) or not done.stdout:
            raise RuntimeError(f"probe failed: {done.stderr}")
        return json.loads(done.stdout)["observations"]

    def check(self, name, holds, figures):
        self.checks.append({"check": name, "holds": bool(holds), "figures": figures})
        self.write(f"{'✔' if holds else '✘'} {name}: {figures}")


def nvidia_smi(field):
    done = subprocess.run(
        ["nvidia-smi", "-i", "0", f"--query-gpu={field}", "--format=csv,noheader,nounits"], capture_output=True, text=True
    )
    return done.stdout.strip()


def bytes_of(observation, figure):
    amount = observation[figure]
    return None if amount is None else round(amount["mib"] * MIB)


def one(observations, instrument):
    return next(item for item in observations if item["instrument"] == instrument and item["device"] == 0)


def settle():
    """A context that ended a moment ago is still being taken down."""
    last = None
    for _ in range(50):
        used = nvidia_smi("memory.used")
        if used == last:
            return int(used)
        last = used
        time.sleep(0.1)
    return int(last)


def machine(record):
    record.title("The machine")
    record.write(f"{platform.platform()}, Python {platform.python_version()}")
    record.run("nvidia-smi", "--query-gpu=index,name,uuid,driver_version,memory.total,memory.reserved,memory.used,memory.free", "--format=csv")
    record.run(record.binary, "--version")


def nvml_only(record):
    record.title("NVML only")
    record.run(record.binary, "probe")
    began = time.perf_counter()
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    nvml.nvmlInit_v2()
    loaded = time.perf_counter() - began
    walls = [record.run(record.binary, "probe", show=False)[1] for _ in range(5)]
    best = min(walls)
    record.check("probe (NVML only) takes under 100 ms after the driver is loaded", best - loaded < 0.1,
                 f"wall {[f'{wall * 1000:.0f} ms' for wall in walls]}, of which loading and starting NVML takes {loaded * 1000:.0f} ms")
    told = one(record.probe(), "nvml")
    for figure, field in [("total", "memory.total"), ("used", "memory.used"), ("free", "memory.free"), ("reserved", "memory.reserved")]:
        mine, theirs = bytes_of(told, figure), int(nvidia_smi(field))
        record.check(f"{figure} by NVML is nvidia-smi's", abs(mine / MIB - theirs) < 1, f"{mine} bytes = {mine / MIB:.2f} MiB; nvidia-smi {theirs} MiB")


def context(record):
    record.title("cudaMemGetInfo and the probe's own context")
    before = settle()
    record.run(record.binary, "probe", "--cuda")
    observations = record.probe("--cuda")
    after = settle()
    record.check("used memory is left as it was found", before == after, f"nvidia-smi before {before} MiB, after {after} MiB")
    nvml, cuda = one(observations, "nvml"), one(observations, "cuda")
    own = bytes_of(cuda, "own_context")
    record.check("the probe measures its own context", own is not None and 100 * MIB < own < 2 * GIB, f"{own} bytes = {own / MIB:.2f} MiB")
    record.check("free without that context is NVML's free to the byte", bytes_of(cuda, "free") == bytes_of(nvml, "free"),
                 f"cuda {bytes_of(cuda, 'free')}, nvml {bytes_of(nvml, 'free')}")
    record.check("CUDA's total is NVML's less what the driver keeps",
                 bytes_of(cuda, "total") == bytes_of(nvml, "total") - bytes_of(nvml, "reserved"),
                 f"{bytes_of(cuda, 'total')} = {bytes_of(nvml, 'total')} - {bytes_of(nvml, 'reserved')}")


def torch_agrees(record):
    record.title("torch.cuda.mem_get_info in the same state")
    child = Child(TORCH)
    for size in [0, 3 * GIB + 12345]:
        free, total = map(int, child.tell(size).split())
        cuda = one(record.probe("--cuda"), "cuda")
        record.check(f"free and total are PyTorch's to the byte ({size} bytes held)",
                     (bytes_of(cuda, "free"), bytes_of(cuda, "total")) == (free, total),
                     f"probe {bytes_of(cuda, 'free')} of {bytes_of(cuda, 'total')}, torch {free} of {total}")
    child.end()


def other_process(record):
    record.title("Another process allocates exactly 10 GiB")
    child = Child(HOLDER)
    child.heard()
    settle()
    before = one(record.probe(), "nvml")
    child.tell(10 * GIB)
    record.run(record.binary, "probe")
    after = one(record.probe(), "nvml")
    rise = bytes_of(after, "used") - bytes_of(before, "used")
    record.check("the device's used memory rises by 10,240 MiB", abs(rise - 10 * GIB) <= GRANULARITY,
                 f"{rise} bytes = {rise / MIB:.2f} MiB, blocks are of 2 MiB")
    def listed(observation):
        mine = [process for process in observation["processes"] if process["pid"] == child.pid]
        return round(mine[0]["used"]["mib"] * MIB) if mine and mine[0]["used"] else None
    one_before, one_after = listed(before), listed(after)
    if one_after is None:
        record.write(f"  process {child.pid} is not listed under its own number here (pid namespaces): {after['processes']}")
    else:
        record.check("its own figure rises by 10,240 MiB", abs(one_after - one_before - 10 * GIB) <= GRANULARITY,
                     f"{one_before} -> {one_after} bytes")
    child.end()
    settle()


def recording(record):
    record.title("Recorded samples")
    path = os.path.join(record.out, "samples.ndjson")
    if os.path.exists(path):
        os.remove(path)
    watcher = subprocess.Popen([record.binary, "probe", "--watch", "0.2", "--count", "15", "--record", path],
                               stdout=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "110"})
    time.sleep(0.8)
    child = Child(HOLDER)
    child.heard()
    child.tell(10 * GIB)
    shown = watcher.communicate()[0]
    child.end()
    record.write("$ vramledger probe --watch 0.2 --count 15 --record samples.ndjson   # its last table")
    record.write(shown[shown.rfind("  MiB"):].rstrip())
    done, _ = record.run(record.binary, "--format", "json", "--smi", path, show=False)
    used = [bytes_of(item, "used") for item in json.loads(done.stdout)["observations"]]
    record.check("the samples are read back, and the 10 GiB are in them", len(used) >= 15 and max(used) - min(used) >= 10 * GIB,
                 f"{len(used)} samples, used from {min(used) / MIB:.2f} to {max(used) / MIB:.2f} MiB")
    text = open(path).read()
    open(path, "w").write(re.sub(r"GPU-[0-9a-f-]{36}", "GPU-00000000-0000-4000-8000-000000000000", text))
    settle()


def too_full(record):
    record.title("A device too full for a context")
    child = Child(HOLDER)
    child.heard()
    free, _ = map(int, child.tell(0).split())
    child.tell((free - 100 * MIB) // GRANULARITY * GRANULARITY)
    done, _ = record.run(record.binary, "probe", "--cuda")
    record.check("is reported, not an error", done.returncode == 0 and "too full for a context" in done.stdout, f"exit {done.returncode}")
    child.end()
    settle()


def visible(record):
    record.title("Visible devices")
    done, _ = record.run(record.binary, "probe", environment={"CUDA_VISIBLE_DEVICES": ""})
    record.check("nothing visible is said", done.returncode == 2, f"exit {done.returncode}")
    done, _ = record.run(record.binary, "probe", "--device", "0", environment={"CUDA_VISIBLE_DEVICES": ""})
    record.check("--device shows a hidden device", done.returncode == 0, f"exit {done.returncode}")


def live(record):
    record.title("report --live on a stand-in server")
    path = os.path.join(record.out, "standin.log")
    child = Child(STANDIN, path)
    child.heard()
    for how in ["--live", "--live=cuda"]:
        record.run(record.binary, path, how)
        done, _ = record.run(record.binary, "--format", "json", path, how, show=False)
        bridge = json.loads(done.stdout)["reconciliations"]
        left = bridge[-1]["unexplained"] if bridge else None
        record.check(f"{how} closes the bridge within 64 MiB", bool(bridge) and bridge[-1]["holds"], f"unexplained {left}")
    child.tell(2 * GIB)
    done, _ = record.run(record.binary, path, "--live", "--quiet")
    record.check("2 GiB more at run time are a finding", done.returncode == 1 and "reconciliation-failed" in done.stdout, f"exit {done.returncode}")
    child.process.send_signal(signal.SIGKILL)
    child.process.wait()
    settle()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--binary", default="target/release/vramledger")
    parser.add_argument("--out", required=True)
    arguments = parser.parse_args()
    record = Record(arguments.binary, arguments.out)
    try:
        import torch
        has_torch = torch.cuda.is_available()
        record.write(f"PyTorch {torch.__version__}")
    except ImportError:
        has_torch = False
    steps = [machine, nvml_only, context, other_process, recording, too_full, visible]
    steps += [torch_agrees, live] if has_torch else []
    for step in steps:
        try:
            step(record)
        except Exception as error:  # a step that breaks must not cost the others
            record.check(step.__name__, False, repr(error))
    record.title("Checks")
    held = sum(check["holds"] for check in record.checks)
    record.write(f"{held} of {len(record.checks)} hold" + ("" if has_torch else "; PyTorch is missing: its comparisons were left out"))
    json.dump(record.checks, open(os.path.join(arguments.out, "checks.json"), "w"), indent=1)
    return 0 if held == len(record.checks) else 1


if __name__ == "__main__":
    sys.exit(main())
