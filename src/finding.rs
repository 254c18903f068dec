//! Findings: coded, explained deviations with their evidence, arithmetic and advice.
//!
//! Only the shape; what is worth a finding is decided in [`crate::rules`].

use crate::place::Place;
use crate::quantity::Quantity;
use crate::rules::Rule;
use crate::stage::Stage;

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Checked and found in order.
    Ok,
    /// Worth knowing.
    Info,
    /// Look here.
    Warning,
    /// Something is wrong.
    Error,
}

impl Severity {
    /// The name in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Severity::Ok => "ok",
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// One finding.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The rule that made it: code, name and documentation.
    pub rule: &'static Rule,
    /// How much it matters here; a rule may raise or lower its usual severity.
    pub severity: Severity,
    /// The rank's tag, where it is about one rank.
    pub rank: Option<String>,
    /// The stage, where it is about one.
    pub stage: Option<Stage>,
    /// One line: what is the case.
    pub title: String,
    /// What it means and why it may be so.
    pub explanation: String,
    /// The sums, one a line.
    pub arithmetic: Vec<String>,
    /// What to do, with values, one a line.
    pub advice: Vec<String>,
    /// The memory in question.
    pub amount: Option<Quantity>,
    /// The figures that it rests on.
    pub places: Vec<Place>,
}

impl Finding {
    /// A finding of `rule` at its usual severity.
    pub fn new(rule: &'static Rule, title: impl Into<String>) -> Finding {
        Finding {
            rule,
            severity: rule.severity,
            rank: None,
            stage: None,
            title: title.into(),
            explanation: String::new(),
            arithmetic: Vec::new(),
            advice: Vec::new(),
            amount: None,
            places: Vec::new(),
        }
    }

    /// At another severity than the rule's usual one.
    pub fn severity(self, severity: Severity) -> Finding {
        Finding { severity, ..self }
    }

    /// About this rank; a launch without tags has none to name.
    pub fn rank(self, tag: &str) -> Finding {
        Finding { rank: Some(tag.to_string()), ..self }
    }

    /// About this stage.
    pub fn stage(self, stage: Stage) -> Finding {
        Finding { stage: Some(stage), ..self }
    }

    /// With this explanation.
    pub fn explain(self, text: impl Into<String>) -> Finding {
        Finding { explanation: text.into(), ..self }
    }

    /// With one more sum.
    pub fn sum(mut self, line: impl Into<String>) -> Finding {
        self.arithmetic.push(line.into());
        self
    }

    /// With one more piece of advice.
    pub fn advise(mut self, line: impl Into<String>) -> Finding {
        self.advice.push(line.into());
        self
    }

    /// About this much memory.
    pub fn amount(self, amount: Quantity) -> Finding {
        Finding { amount: Some(amount), ..self }
    }

    /// Resting on these figures.
    pub fn at(mut self, places: impl IntoIterator<Item = Place>) -> Finding {
        self.places.extend(places);
        self
    }
}
