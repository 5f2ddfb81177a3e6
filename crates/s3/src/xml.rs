//! The little XML that stores answer: elements by their name, wherever they are. What is not understood is left out; what
//! must be there and is not is an error of whoever looks for it.

/// The text in the first element with this name, with entities as they are.
fn raw<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let mut rest = text;
    loop {
        let (_, behind) = rest.split_once('<')?;
        let end = behind.find('>')?;
        let (tag, after) = (&behind[..end], &behind[end + 1..]);
        rest = after;
        let found = tag.split([' ', '\t', '\r', '\n', '/']).next().unwrap_or_default();
        // A store may put names into a namespace.
        if found.rsplit(':').next() != Some(name) || tag.starts_with('/') {
            continue;
        }
        if tag.ends_with('/') {
            return Some(("", after));
        }
        let close = after.find(&format!("</{found}>"))?;
        return Some((&after[..close], &after[close..]));
    }
}

/// The text in the first element with this name.
pub(crate) fn element(text: &str, name: &str) -> Option<String> {
    raw(text, name).map(|(inner, _)| unescaped(inner))
}

/// What is inside each element with this name, as it is.
pub(crate) fn elements<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (inner, after) = raw(rest, name)?;
        rest = after;
        Some(inner)
    })
}

fn unescaped(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, behind)) = rest.split_once('&') {
        out.push_str(before);
        let Some((entity, after)) = behind.split_once(';') else {
            out.push('&');
            rest = behind;
            continue;
        };
        let number = |digits: &str, radix| u32::from_str_radix(digits, radix).ok().and_then(char::from_u32);
        let found = match entity {
            "amp" => Some('&'),
            "lt" => Some('<'),
            "gt" => Some('>'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => match entity.strip_prefix('#') {
                Some(digits) => match digits.strip_prefix('x') {
                    Some(digits) => number(digits, 16),
                    None => number(digits, 10),
                },
                None => None,
            },
        };
        match found {
            Some(c) => {
                out.push(c);
                rest = after;
            }
            None => {
                out.push('&');
                rest = behind;
            }
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_by_name() {
        let text = "<?xml version=\"1.0\"?><List xmlns=\"x\"><Truncated>true</Truncated><A><Key>a&amp;b</Key></A>\
                    <A ><s:Key>&#x63;&#100;</s:Key></A><Empty/></List>";
        assert_eq!(element(text, "Truncated").as_deref(), Some("true"));
        assert_eq!(element(text, "Empty").as_deref(), Some(""));
        assert_eq!(element(text, "Absent"), None);
        let keys: Vec<_> = elements(text, "A").filter_map(|inner| element(inner, "Key")).collect();
        assert_eq!(keys, ["a&b", "cd"]);
    }

    #[test]
    fn anything_else_is_nothing_and_no_panic() {
        for text in [
            "",
            "<",
            "<A",
            "<A>",
            "<A>x",
            "</A>",
            "&",
            "<A>&#xffffffff;&nope;&</A>",
            "<é>ü</é>",
            "<A><A></A>",
        ] {
            let _ = (element(text, "A"), elements(text, "A").count());
        }
        assert_eq!(element("<A>&#xffffffff;&nope;&</A>", "A").as_deref(), Some("&#xffffffff;&nope;&"));
    }
}
