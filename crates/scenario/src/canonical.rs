//! Canonical text of a document: equal scenarios give equal bytes.

use fanin_params::{Node, Value};
use sha2::{Digest, Sha256};

/// Canonical JSON of a document: no white space, keys sorted, numbers in their shortest form.
pub fn canonical_json(node: &Node) -> String {
    let mut text = String::new();
    write(node, &mut text);
    text
}

fn write(node: &Node, text: &mut String) {
    match &node.value {
        Value::Bool(b) => text.push_str(if *b { "true" } else { "false" }),
        Value::Int(n) => text.push_str(&n.to_string()),
        // Debug keeps the point of whole numbers, so that a float reads back as one.
        Value::Float(x) => text.push_str(&format!("{x:?}")),
        Value::Text(s) => text.push_str(&quoted(s)),
        Value::List(items) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                text.push_str(if i > 0 { "," } else { "" });
                write(item, text);
            }
            text.push(']');
        }
        Value::Table(entries) => {
            let mut sorted: Vec<&(String, Node)> = entries.iter().collect();
            sorted.sort_by(|a, b| a.0.cmp(&b.0));
            text.push('{');
            for (i, (key, item)) in sorted.into_iter().enumerate() {
                text.push_str(if i > 0 { "," } else { "" });
                text.push_str(&quoted(key));
                text.push(':');
                write(item, text);
            }
            text.push('}');
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// SHA-256 of `bytes` in hex digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read_json;

    #[test]
    fn key_order_and_spaces_do_not_matter_values_do() {
        let canonical = |text: &str| canonical_json(&read_json(text).unwrap());
        assert_eq!(canonical("{\"b\": [1, 2.0, \"x\\n\"], \"a\": true}"), "{\"a\":true,\"b\":[1,2.0,\"x\\n\"]}");
        assert_eq!(canonical("{\"a\":1,\"b\":2}"), canonical(" {\"b\": 2, \"a\": 1} "));
        assert_ne!(canonical("{\"a\":1}"), canonical("{\"a\":1.0}"));
        let again = canonical("{\"x\": 1e300, \"y\": 1e-7}");
        assert_eq!(canonical(&again), again);
    }

    #[test]
    fn the_hash_is_sha_256() {
        assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
