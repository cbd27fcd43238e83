//! Patterns of names: `*` stands for any text.

/// True if `pattern` matches all of `name`.
pub fn fits(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let middle: Vec<&str> = parts.collect();
    let Some((last, middle)) = middle.split_last() else { return rest.is_empty() };
    for part in middle {
        // The first place where a part fits leaves most room for those that follow.
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, name, expected) in [
            ("leaf0->h3", "leaf0->h3", true),
            ("leaf0->h3", "leaf0->h31", false),
            ("*->h3", "leaf0->h3", true),
            ("*->h3", "leaf0->h13", false),
            ("leaf*->spine*", "leaf10->spine2", true),
            ("leaf*->spine*", "spine2->leaf10", false),
            ("*", "anything", true),
            ("*a*a*", "a", false),
            ("*a*a*", "xaya", true),
            ("a*a", "a", false),
            ("", "", true),
            ("", "x", false),
        ] {
            assert_eq!(fits(pattern, name), expected, "{pattern} {name}");
        }
    }
}
