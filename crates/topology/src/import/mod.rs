//! Networks from files. Files are untrusted: sizes are bounded, nothing is allocated from a claimed count, and every problem
//! names file and line.

mod edge_list;
mod graphml;
mod hpcc;
mod json;

use crate::config::{FileFormat, FromFile};
use crate::draft::{quote, Draft, Findings};
use crate::network::Topology;
use fanin_params::Problem;
use fanin_units::{BitRate, Quantity, QuantityError, Span};
use std::io::Read;
use std::path::Path;

/// Largest file that is read \[bytes\].
pub(crate) const MAX_FILE: u64 = 32 << 20;

/// Defaults of links for which the file gives no value.
#[derive(Clone, Copy)]
pub(crate) struct Defaults {
    pub rate: Option<BitRate>,
    pub delay: Option<Span>,
}

/// Reads the network file that `config` names.
pub fn read(config: &FromFile, base_dir: &Path) -> Result<Topology, Vec<Problem>> {
    let mut findings = Findings::of(&config.path);
    let Some(format) = config.format.or_else(|| by_ending(&config.path)) else {
        let accepted = format!("a file ending in .graphml, .json or .txt, or `format`: {}", FileFormat::NAMES.join(", "));
        findings.error(None, Some(quote(&config.path)), "does not indicate its format", Some(accepted));
        return Err(findings.into_problems());
    };
    let text = match load(&base_dir.join(&config.path)) {
        Ok(text) => text,
        Err((message, accepted)) => {
            findings.error(None, None, message, Some(accepted));
            return Err(findings.into_problems());
        }
    };
    parse(format, &text, Defaults { rate: config.rate, delay: config.delay }, findings)
}

/// Parses a network in the given format.
pub(crate) fn parse(
    format: FileFormat,
    text: &str,
    defaults: Defaults,
    mut findings: Findings,
) -> Result<Topology, Vec<Problem>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut draft = Draft::default();
    match format {
        FileFormat::Graphml => graphml::read(text, defaults, &mut draft, &mut findings),
        FileFormat::EdgeList => edge_list::read(text, defaults, &mut draft, &mut findings),
        FileFormat::Hpcc => hpcc::read(text, &mut draft, &mut findings),
    }
    draft.finish(findings)
}

fn by_ending(path: &str) -> Option<FileFormat> {
    let (_, ending) = path.rsplit_once('.')?;
    match ending.to_ascii_lowercase().as_str() {
        "graphml" => Some(FileFormat::Graphml),
        "json" => Some(FileFormat::EdgeList),
        "txt" => Some(FileFormat::Hpcc),
        _ => None,
    }
}

fn load(path: &Path) -> Result<String, (String, String)> {
    let readable = || "a readable file".to_string();
    let bounded = || format!("a file of at most {} MiB", MAX_FILE >> 20);
    let failed = |error: std::io::Error| (format!("cannot be read: {error} ({})", path.display()), readable());
    // Before it is opened: that waits for ever where nobody writes into a named pipe.
    if !std::fs::metadata(path).map_err(failed)?.is_file() {
        return Err((format!("is not a regular file ({})", path.display()), readable()));
    }
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(("is too large".to_string(), bounded()));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        (format!("is not UTF-8 text: the byte at {at} is not"), "UTF-8".to_string())
    })
}

/// Parses a quantity of a link, or reports why it is malformed.
pub(crate) fn quantity<Q: Quantity>(text: &str, line: Option<u32>, what: &str, findings: &mut Findings) -> Option<Q> {
    match Q::read(text) {
        Ok(value) => Some(value),
        Err(error) => {
            let mut accepted = format!("{} such as {}", Q::WHAT, Q::EXAMPLES);
            if let QuantityError::UnknownUnit(unit) = &error {
                if let Some((known, _)) = Q::UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit)) {
                    accepted = format!("{accepted}; did you mean '{known}'?");
                }
            }
            findings.error(line, Some(quote(text)), format!("is no {what}: it {error}"), Some(accepted));
            None
        }
    }
}
