//! The grammar of nvidia-smi's output in all its forms, and of its relatives.
