//! Links between the documents of the project lead somewhere: to a file that exists, and to a heading of that file.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use syros_protocol::message::Refusal;
use syros_protocol::replica::ViewChangeCause;

/// Folders without documents of ours.
const SKIPPED: &[&str] = &["target", "node_modules", "corpus"];

/// The folder of the workspace.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace exists")
}

/// All files below a folder whose names end with `.extension`, without hidden folders.
fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of the workspace can be read") {
        let path = entry.expect("an entry of a folder can be read").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && !name.starts_with('.') && !SKIPPED.contains(&name) {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|is| is == extension) {
            found.push(path);
        }
    }
}

/// The lines outside fenced and indented code.
fn prose(document: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    document.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence && !line.starts_with("    ")
    })
}

/// The name that GitHub gives a heading: letters, digits, hyphens and underscores in lower case, hyphens for spaces.
fn anchor(heading: &str) -> String {
    let kept = |character: &char| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_');
    heading.trim().to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

/// The anchors of a document. Of several equal headings, the second has the suffix `-1`, and so on.
fn anchors(document: &str) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for line in prose(document).filter(|line| line.starts_with('#')) {
        let name = anchor(line.trim_start_matches('#'));
        let repeated = (1..).map(|number| format!("{name}-{number}"));
        let free = std::iter::once(name.clone()).chain(repeated).find(|name| !known.contains(name));
        known.extend(free);
    }
    known
}

/// The targets of all links and images, without what stands in code.
fn targets(document: &str) -> Vec<String> {
    let text = prose(document).collect::<Vec<_>>().join("\n");
    let outside_code = text.split('`').step_by(2).collect::<Vec<_>>().join("code");
    let after = outside_code.split("](").skip(1);
    after.filter_map(|rest| Some(rest.split_once(')')?.0.trim().to_string())).collect()
}

/// What is wrong with the links of one document.
fn broken_links(path: &Path, document: &str) -> Vec<String> {
    let folder = path.parent().expect("a document is in a folder");
    let elsewhere = |target: &String| target.contains("://") || target.starts_with("mailto:");
    let wrong = |target: &String| {
        let (file, heading) = target.split_once('#').unwrap_or((target, ""));
        let named = folder.join(file);
        let content = match file {
            "" => Ok(document.to_string()),
            _ if named.is_dir() => Ok(String::new()),
            _ => fs::read(&named).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        };
        let Ok(content) = content else {
            return Some(format!("{}: {target}: there is no such file", path.display()));
        };
        let known = heading.is_empty() || anchors(&content).contains(heading);
        (!known).then(|| format!("{}: {target}: the file has no such heading", path.display()))
    };
    targets(document).iter().filter(|target| !elsewhere(target)).filter_map(wrong).collect()
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut documents = Vec::new();
    files(&root(), "md", &mut documents);
    assert!(documents.len() > 8, "{} documents were found, which are too few", documents.len());
    let read = |path: &PathBuf| fs::read_to_string(path).expect("a document is text");
    let broken: Vec<_> = documents.iter().flat_map(|path| broken_links(path, &read(path))).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

/// What documents say in code of a path from the root that does not exist, such as `crates/wal/src/gone.rs`.
fn missing_paths(document: &str) -> Vec<String> {
    let folders = ["crates/", "docs/", "examples/", "experiments/", "fuzz/", "scripts/", "tests/"];
    let text = prose(document).collect::<Vec<_>>().join("\n");
    let spans = text.split('`').skip(1).step_by(2);
    let paths =
        spans.filter_map(|span| span.split_whitespace().next()).map(|path| path.trim_end_matches(':'));
    let paths =
        paths.filter(|path| folders.iter().any(|folder| path.starts_with(folder)) && !path.contains('*'));
    paths.filter(|path| !root().join(path).exists()).map(str::to_string).collect()
}

#[test]
fn documents_name_paths_that_exist() {
    let mut documents = Vec::new();
    files(&root(), "md", &mut documents);
    let mut missing = Vec::new();
    for path in documents {
        let document = fs::read_to_string(&path).expect("a document is text");
        missing.extend(missing_paths(&document).iter().map(|named| format!("{}: {named}", path.display())));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert_eq!(missing_paths("`crates/gone.rs`, `crates/*/src`, and `scripts/verify`"), ["crates/gone.rs"]);
}

/// Comments name documents by their paths from the root, such as `docs/TESTING.md`.
#[test]
fn sources_name_documents_that_exist() {
    let mut sources = Vec::new();
    files(&root().join("crates"), "rs", &mut sources);
    let mut missing = Vec::new();
    for path in sources {
        let text = fs::read_to_string(&path).expect("a source is text");
        let words = text.split(|character: char| !character.is_alphanumeric() && !"/._-".contains(character));
        let named = words.map(|word| word.trim_end_matches('.'));
        let named = named.filter(|word| word.starts_with("docs/") && word.ends_with(".md"));
        missing
            .extend(named.filter(|name| !root().join(name).exists()).map(|name| format!("{path:?}: {name}")));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// What stands in quotes behind `before`, once for each line that has it of a source, or of the sources in a folder.
fn quoted(source: &str, before: &str) -> BTreeSet<String> {
    let path = root().join(source);
    let mut sources = Vec::new();
    if path.is_dir() {
        files(&path, "rs", &mut sources);
    } else {
        sources.push(path);
    }
    let mut found = BTreeSet::new();
    for source in sources {
        let text = fs::read_to_string(source).expect("a source is text");
        let rest = text.lines().filter_map(|line| line.split_once(before));
        found.extend(rest.filter_map(|(_, rest)| Some(rest.split_once('"')?.0.to_string())));
    }
    found
}

/// The names that no word of a document's section is.
fn unnamed(names: BTreeSet<String>, document: &str, section: &str) -> Vec<String> {
    let text = fs::read_to_string(root().join(document)).expect("a document is text");
    let (_, section) = text.split_once(&format!("\n## {section}\n")).expect("the document has the section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let words: BTreeSet<_> =
        section.split(|character: char| !(character.is_alphanumeric() || character == '_')).collect();
    names.into_iter().filter(|name| !words.contains(name.as_str())).collect()
}

#[test]
fn the_readme_names_every_command() {
    let mut names = quoted("crates/commands/src/families", "name: \"");
    // Rows that others are completed by have no name, and subcommands are part of their command.
    names.retain(|name| !name.is_empty() && !name.contains('|'));
    assert!(names.len() > 50, "{} commands were found, which are too few", names.len());
    let names = names.iter().map(|name| name.to_uppercase()).chain(["NOSUCH".to_string()]).collect();
    assert_eq!(
        unnamed(names, "README.md", "Commands and limits"),
        ["NOSUCH"],
        "but for NOSUCH, which does not exist"
    );
}

#[test]
fn the_protocol_names_every_message() {
    let mut names = quoted("crates/protocol/src/message/mod.rs", "=> \"");
    names.retain(|name| name.starts_with(char::is_uppercase));
    assert!(names.len() > 30, "{} messages were found, which are too few", names.len());
    names.insert("NoSuchMessage".to_string());
    assert_eq!(unnamed(names, "docs/PROTOCOL.md", "Messages"), ["NoSuchMessage"]);
}

/// The check itself finds a file and a heading that do not exist, and takes no link in code for one.
#[test]
fn broken_links_are_found() {
    let here = root().join("README.md");
    let document = "# A heading, twice\n# A heading, twice\n[a](#a-heading-twice-1) [b](#nowhere)\n[c\nd](gone.md) \
                    `[e](code.md)` [f](https://example.org/x.md) [g](ARCHITECTURE.md#nowhere)\n\n    [h](code.md)\n";
    let broken = broken_links(&here, document);
    let expected = ["#nowhere: the file", "gone.md: there is", "ARCHITECTURE.md#nowhere: the file"];
    assert_eq!(broken.len(), expected.len(), "{broken:?}");
    for (found, expected) in broken.iter().zip(expected) {
        assert!(found.contains(expected), "{found} is not about {expected}");
    }
}

/// The words of a table's first column, in a section of the runbooks, that stand in code.
fn reasons_of(section: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join("docs/operate/runbooks.md")).expect("a document is text");
    let (_, section) = text.split_once(&format!("\n## {section}\n")).expect("the section is there");
    let section = section.split("\n## ").next().unwrap_or_default();
    let first = section.lines().filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    first.flat_map(|cell| cell.split('`').step_by(2).map(str::to_string).collect::<Vec<_>>()).collect()
}

/// A rule for a reason that does not exist never fires.
#[test]
fn alerts_and_runbooks_name_reasons_that_exist() {
    let refusals: BTreeSet<String> = Refusal::ALL.iter().map(|refusal| refusal.name().to_string()).collect();
    let causes: BTreeSet<String> = ViewChangeCause::NAMES.iter().map(|name| (*name).to_string()).collect();
    let rules = fs::read_to_string(root().join("docs/operate/alerts.yml")).expect("a document is text");
    let ours = quoted("docs/operate/alerts.yml", "reason=~\"");
    let watched: BTreeSet<String> = ours.iter().flat_map(|all| all.split('|').map(str::to_string)).collect();
    assert!(rules.contains("reason=~") && watched.len() > 3, "{watched:?}");
    assert!(watched.is_subset(&refusals), "{watched:?} of {refusals:?}");
    // The dashboard watches the same ones.
    let page = fs::read_to_string(root().join("crates/metrics/dashboard/alerts.js")).expect("it is text");
    let (_, list) = page.split_once("const reasons = [").expect("it lists them");
    let list = list.split(']').next().unwrap_or_default();
    assert_eq!(list.split('"').skip(1).step_by(2).map(str::to_string).collect::<BTreeSet<_>>(), watched);
    assert_eq!(reasons_of("SyrosOperationsRefused"), watched);
    let explained = reasons_of("SyrosLeaderChanges");
    assert!(explained.len() > 5 && explained.is_subset(&causes), "{explained:?} of {causes:?}");
}
