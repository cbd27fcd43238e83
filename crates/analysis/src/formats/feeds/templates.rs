//! Templates of IPFIX and of NetFlow 9: messages, sets, fields.
//!
//! Source: RFC 7011 (IPFIX: messages, sets, templates, fields of variable length); RFC 3954 (NetFlow 9, whose templates stand in sets of
//! the number 0 and have no enterprises).

use crate::input::problem::Problem;

/// Bytes of the header of an IPFIX message, and of a set.
pub const HEADER: usize = 16;
const SET: usize = 4;
/// Fields of all templates, at most.
pub const FIELDS: usize = 1 << 20;
/// Length of a field that says in each record how long it is.
pub const VARIABLE: u16 = u16::MAX;

pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|b| u16::from_be_bytes(*b))
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|b| u32::from_be_bytes(*b))
}

/// A number of up to 8 bytes.
#[inline]
pub fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// A field of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    pub element: u16,
    pub enterprise: Option<u32>,
    pub length: u16,
}

/// A set: its number, its body, and the bytes behind it.
pub type Set<'a> = (u16, &'a [u8], &'a [u8]);

/// The set at the front of bytes; none where they are too short for one.
///
/// # Errors
/// It ends beyond the bytes, or within its own header.
pub fn set(bytes: &[u8]) -> Result<Option<Set<'_>>, Problem> {
    let (Some(id), Some(length)) = (u16_at(bytes, 0), u16_at(bytes, 2)) else { return Ok(None) };
    let length = usize::from(length);
    if length < SET || length > bytes.len() {
        let problem = Problem::new("is no length of a set: it ends beyond its message, or within its own header");
        let problem = problem.column(format!("set {id}")).value(length.to_string());
        return Err(problem.accepted(format!("from {SET} to {} bytes, what is left of the message", bytes.len())));
    }
    Ok(Some((id, &bytes[SET..length], &bytes[length..])))
}

/// Hands each template of a set over; one without fields is withdrawn.
///
/// # Errors
/// The set ends within a template; what `each` says.
pub fn templates(
    mut body: &[u8],
    enterprises: bool,
    mut each: impl FnMut(u16, &[Field]) -> Result<(), Problem>,
) -> Result<(), Problem> {
    let mut fields = Vec::new();
    // Up to three bytes behind the last template are padding.
    while let (Some(id @ 256..), Some(count)) = (u16_at(body, 0), u16_at(body, 2)) {
        let short = || {
            Problem::new("ends within a template").column("template").value(id.to_string()).accepted("as many fields as it says")
        };
        let mut at = 4;
        fields.clear();
        for _ in 0..count {
            let (element, length) = (u16_at(body, at).ok_or_else(short)?, u16_at(body, at + 2).ok_or_else(short)?);
            at += 4;
            let enterprise = (enterprises && element & 0x8000 != 0).then(|| u32_at(body, at).ok_or_else(short)).transpose()?;
            at += if enterprise.is_some() { 4 } else { 0 };
            let element = if enterprises { element & 0x7fff } else { element };
            fields.push(Field { element, enterprise, length });
        }
        body = &body[at..];
        each(id, &fields)?;
    }
    Ok(())
}
