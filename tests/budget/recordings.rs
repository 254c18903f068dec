//! Tokens, defaults and projections of every recorded launch.

use super::support::{facts, names, recorded};
use vramledger::budget::audit::TokenVerdict;
use vramledger::budget::plan::{Change, project};
use vramledger::launch::Outcome;

#[test]
fn tokens_lie_where_the_arithmetic_says() {
    let mut launches = 0;
    for name in names() {
        for launch in recorded(&name).launches {
            for world in launch.audit.iter().flat_map(|audit| &audit.worlds) {
                let Some(tokens) = world.tokens.as_ref().filter(|tokens| tokens.printed.is_some()) else {
                    continue;
                };
                launches += 1;
                assert_eq!(tokens.verdict, Some(TokenVerdict::Agrees), "{name}: {tokens:?}");
                let (low, high) = tokens.divided.unwrap();
                assert!(high - low < 2500, "{name}: a range that wide tells nothing: {low} to {high}");
                assert!(world.cell.unwrap().likely.is_some(), "{name}");
                if let Some(requests) = &world.requests {
                    let (least, most) = requests.predicted.unwrap();
                    let printed = requests.printed.unwrap();
                    assert!(least <= printed && printed <= most, "{name}: {requests:?}");
                }
            }
        }
    }
    assert!(launches > 25);
}

#[test]
fn defaults_come_out_as_the_server_chose_them() {
    let chosen = [("graphs-off-default-fraction-0.5.12", 0.907), ("pair-chunk2048-default-f-0.5.12", 0.929)];
    for name in names() {
        for launch in recorded(&name).launches {
            let Some(default) = launch.audit.as_ref().and_then(|audit| audit.default.clone()) else {
                continue;
            };
            let expected = chosen.iter().find(|(chosen, _)| *chosen == name);
            assert_eq!(default.equals_printed, Some(expected.is_some()), "{name}: {default:?}");
            if let Some((_, fraction)) = expected {
                assert_eq!(default.derived.printed, *fraction);
            }
        }
    }
}

#[test]
fn no_change_projects_to_what_was_measured() {
    for name in names() {
        for launch in recorded(&name).launches {
            if !matches!(launch.launch.outcome, Outcome::Ready | Outcome::Running) {
                continue;
            }
            let facts = facts(&launch);
            let same = project(facts, &Change::default()).unwrap();
            let printed = facts.tokens.unwrap();
            assert_eq!(same.tokens, (printed, printed), "{name}");
            assert_eq!(same.remaining.unwrap().midpoint(), facts.remaining.unwrap().midpoint(), "{name}");
        }
    }
}

#[test]
fn the_slack_is_accounted_for() {
    for name in names() {
        for launch in recorded(&name).launches {
            for world in launch.audit.iter().flat_map(|audit| &audit.worlds) {
                let Some(used) = world.slack_use.as_ref() else { continue };
                // slack + what KV did not take = what was used + what remains, on the rank that decided.
                if world.available.as_ref().unwrap().rank == used.rank {
                    let left =
                        world.slack.unwrap() + used.unspent.unwrap() - used.used() - used.remaining.unwrap();
                    assert!(left.contains(0), "{name}: {left:?} is not accounted for");
                }
            }
        }
    }
}
