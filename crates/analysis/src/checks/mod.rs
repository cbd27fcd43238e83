//! Plausibility: findings that contradict a trace, and how far its result can be trusted.

pub mod records;

use serde::Serialize;

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Worth knowing; the result stands.
    Note,
    /// Parts of the result may be wrong.
    Doubt,
    /// The trace is not of the kind that it was taken for.
    Wrong,
}

/// Finding of a check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Kind of the finding; docs/analyze.md lists them.
    pub code: &'static str,
    pub level: Level,
    /// File or port that the finding is about.
    pub place: String,
    /// Number of packets, flows or steps that the finding is about.
    pub count: u64,
    pub bytes: Option<u64>,
    /// Description of the finding.
    pub words: String,
    /// Advice on the finding.
    pub hint: String,
}

/// Trust that a result deserves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trust {
    /// Nothing was found that casts doubt on the result.
    Good,
    Limited,
    Poor,
}

/// All findings about a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plausibility {
    pub trust: Trust,
    /// Trust in the result, in a sentence.
    pub words: String,
    /// Findings, the gravest first.
    pub findings: Vec<Finding>,
}

impl Plausibility {
    pub fn of(mut findings: Vec<Finding>) -> Self {
        findings.sort_by(|a, b| (b.level, a.code, &a.place).cmp(&(a.level, b.code, &b.place)));
        let grave = |level: Level| {
            let mut codes: Vec<&str> = findings.iter().filter(|f| f.level == level).map(|f| f.code).collect();
            codes.dedup();
            codes.join(", ")
        };
        let (wrong, doubt) = (grave(Level::Wrong), grave(Level::Doubt));
        let (trust, words) = if !wrong.is_empty() {
            (Trust::Poor, format!("do not rely on this result: the trace is not what it was taken for ({wrong})"))
        } else if !doubt.is_empty() {
            (Trust::Limited, format!("parts of this result may be wrong ({doubt})"))
        } else {
            (Trust::Good, "no check of the trace casts doubt on this result".to_string())
        };
        Plausibility { trust, words, findings }
    }

    /// Findings as sentences, with the trust that follows.
    pub fn notes(&self) -> Vec<String> {
        let found = self.findings.iter().map(|f| format!("{}: {}; {}", f.place, f.words, f.hint));
        let sum = (self.trust != Trust::Good).then(|| self.words.clone());
        found.chain(sum).collect()
    }
}

/// The finding on a trace without a single record: nothing was seen that could be judged.
pub fn nothing_in(place: &str) -> Finding {
    Finding {
        code: "no_records",
        level: Level::Wrong,
        place: place.to_string(),
        count: 0,
        bytes: None,
        words: "there is no record in it, so there is nothing that could be trusted".into(),
        hint: "was it stopped before the first packet, or the second look at the counters, or is what was asked for not in it?"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_is_as_good_as_the_gravest_finding() {
        let finding = |code, level| Finding {
            code,
            level,
            place: "a.pcap".into(),
            count: 1,
            bytes: None,
            words: "w".into(),
            hint: "h".into(),
        };
        assert_eq!(Plausibility::of(Vec::new()).trust, Trust::Good);
        let note = Plausibility::of(vec![finding("no_syn", Level::Note)]);
        assert_eq!((note.trust, note.notes()), (Trust::Good, vec!["a.pcap: w; h".to_string()]));
        let doubt = Plausibility::of(vec![finding("no_syn", Level::Note), finding("lost", Level::Doubt)]);
        assert_eq!((doubt.trust, doubt.findings[0].code), (Trust::Limited, "lost"));
        assert_eq!(doubt.notes()[2], "parts of this result may be wrong (lost)");
        let wrong = Plausibility::of(vec![finding("lost", Level::Doubt), finding("cumulative_queue", Level::Wrong)]);
        assert!(wrong.trust == Trust::Poor && wrong.words.ends_with("not what it was taken for (cumulative_queue)"));
    }
}
