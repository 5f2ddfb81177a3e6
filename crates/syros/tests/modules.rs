//! Rules for the modules of each crate, read from the sources: they import each other in one direction only, and a module
//! with others inside it is `name/mod.rs`.
//!
//! A module and the modules inside it are one unit to everything outside: an import counts between the two siblings that
//! hold its ends. So a parent and its children may share names, and two siblings may not import each other, directly or
//! in a circle. Unit tests do not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// A module by the names that lead to it from the root of its crate.
type Name = Vec<String>;

/// A word, or one character of anything else. Comments are gone; a literal is one `"`.
type Token = String;

fn tokens(source: &str) -> Vec<Token> {
    let bytes = source.as_bytes();
    let (mut tokens, mut at) = (Vec::new(), 0);
    let find = |from: usize, end: &str| {
        source[from..].find(end).map_or(bytes.len(), |found| from + found + end.len())
    };
    while at < bytes.len() {
        let rest = &source[at..];
        let word = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        let raw = rest.strip_prefix("br").or(rest.strip_prefix('r')).filter(|rest| {
            rest.trim_start_matches('#').starts_with('"') && (rest.starts_with('"') || rest.starts_with('#'))
        });
        if let Some(raw) = raw {
            let hashes = raw.len() - raw.trim_start_matches('#').len();
            let start = at + rest.len() - raw.len() + hashes + 1;
            at = find(start, &format!("\"{}", "#".repeat(hashes)));
            tokens.push("\"".to_owned());
        } else if rest.starts_with("//") {
            at = find(at, "\n");
        } else if rest.starts_with("/*") {
            at = find(at, "*/");
        } else if rest.starts_with('"') {
            at += 1;
            while at < bytes.len() && bytes[at] != b'"' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at += 1;
            tokens.push("\"".to_owned());
        } else if rest.starts_with('\'') {
            // A character has its end after one character or an escape; anything else is a lifetime.
            let mut chars = rest.char_indices().skip(1);
            let length = match chars.next() {
                Some((_, '\\')) => rest[3..].find('\'').map(|end| 3 + end + 1),
                Some(_) => chars.next().filter(|(_, end)| *end == '\'').map(|(end, _)| end + 1),
                None => None,
            };
            at += length.unwrap_or(1);
            tokens.push("\"".to_owned());
        } else if word > 0 {
            tokens.push(rest[..word].to_owned());
            at += word;
        } else {
            let one = rest.chars().next().expect("there is a rest");
            if !one.is_whitespace() {
                tokens.push(one.to_string());
            }
            at += one.len_utf8();
        }
    }
    tokens
}

/// Where the group ends whose bracket opens at `at`: behind its closing bracket.
fn group_end(tokens: &[Token], at: usize) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

/// Takes out every item that only tests have. Returns the names of the modules among them that are files.
fn without_tests(tokens: &[Token]) -> (Vec<Token>, BTreeSet<String>) {
    let is = |at: usize, words: &[&str]| {
        words.iter().enumerate().all(|(n, word)| tokens.get(at + n).is_some_and(|t| t == word))
    };
    let (mut kept, mut files, mut at) = (Vec::new(), BTreeSet::new(), 0);
    while at < tokens.len() {
        if !is(at, &["#", "[", "cfg", "(", "test", ")", "]"]) {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        }
        at += 7;
        while is(at, &["#"]) {
            at = group_end(tokens, at + 1);
        }
        let start = at;
        while at < tokens.len() && !is(at, &[";"]) && !is(at, &["{"]) && !is(at, &[","]) {
            at = if is(at, &["("]) || is(at, &["["]) { group_end(tokens, at) } else { at + 1 };
        }
        let item = &tokens[start..at];
        if let Some(place) = item.iter().position(|token| token == "mod") {
            files.extend(item.get(place + 1).cloned());
        }
        // An import with a group in it goes on up to its semicolon.
        let is_import = item.iter().any(|token| token == "use");
        at = if is(at, &["{"]) { group_end(tokens, at) } else { at + 1 };
        if is_import && is(at, &[";"]) {
            at += 1;
        }
    }
    (kept, files)
}

/// The paths of an import, which starts at `at`, each with the name that it has here.
fn import(tokens: &[Token], at: &mut usize, before: &[String], found: &mut Vec<(Name, String)>) {
    let mut path = before.to_vec();
    while let Some(token) = tokens.get(*at) {
        *at += 1;
        match token.as_str() {
            ":" => {}
            "{" => {
                while tokens.get(*at).is_some_and(|token| token != "}") {
                    import(tokens, at, &path, found);
                    if tokens.get(*at).is_some_and(|token| token == ",") {
                        *at += 1;
                    }
                }
                *at += 1;
                return;
            }
            "as" => {
                let name = tokens.get(*at).cloned().unwrap_or_default();
                *at += 1;
                found.push((path, name));
                return;
            }
            "," | "}" | ";" => {
                *at -= 1;
                break;
            }
            "self" if !path.is_empty() => {}
            _ => path.push(token.clone()),
        }
    }
    if let Some(name) = path.last().cloned() {
        found.push((path, name));
    }
}

/// What a module says of others.
#[derive(Debug, Default)]
struct Module {
    /// Paths of imports and the names that they have here.
    imports: Vec<(Name, String)>,
    /// Every path that begins with `crate` or `super`, those of imports included.
    paths: Vec<Name>,
}

#[derive(Debug, Default)]
struct Crate {
    modules: BTreeMap<Name, Module>,
}

impl Crate {
    /// Reads the module `name`, whose file is `file`, and those inside it.
    fn read(&mut self, name: &[String], file: &Path, folder: &Path) {
        let source = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let tests = self.add(name, &source);
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries {
            let path = entry.expect("a folder can be read").path();
            let stem = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
            let is_root = ["lib", "main", "mod"].contains(&stem.as_str());
            let is_source = path.extension().is_some_and(|extension| extension == "rs");
            let inner = [name, std::slice::from_ref(&stem)].concat();
            if is_root || tests.contains(&stem) {
                continue;
            }
            if is_source {
                self.read(&inner, &path, &folder.join(&stem));
            } else if path.join("mod.rs").exists() {
                self.read(&inner, &path.join("mod.rs"), &path);
            }
        }
    }

    /// Takes in the source of the module `name`. Returns the names of the modules inside it that only tests have.
    fn add(&mut self, name: &[String], source: &str) -> BTreeSet<String> {
        let (tokens, tests) = without_tests(&tokens(source));
        self.scan(name, &tokens, &mut 0);
        tests
    }

    /// Scans the body of the module `name` up to the bracket that closes it.
    fn scan(&mut self, name: &[String], tokens: &[Token], at: &mut usize) {
        self.modules.entry(name.to_vec()).or_default();
        let mut depth = 0;
        while let Some(token) = tokens.get(*at) {
            *at += 1;
            let opens = tokens.get(*at + 1).is_some_and(|token| token == "{");
            match token.as_str() {
                "mod" if opens => {
                    let inner = [name, &[tokens[*at].clone()]].concat();
                    *at += 2;
                    self.scan(&inner, tokens, at);
                }
                "{" => depth += 1,
                "}" if depth == 0 => return,
                "}" => depth -= 1,
                "use" if tokens.get(*at).is_some_and(|token| token != "<") => {
                    let mut found = Vec::new();
                    import(tokens, at, &[], &mut found);
                    let module = self.modules.entry(name.to_vec()).or_default();
                    let ours =
                        |path: &&Name| path.first().is_some_and(|first| first == "crate" || first == "super");
                    module.paths.extend(found.iter().map(|(path, _)| path).filter(ours).cloned());
                    module.imports.extend(found);
                }
                "crate" | "super" => {
                    let mut path = vec![token.clone()];
                    while tokens.get(*at).is_some_and(|token| token == ":")
                        && tokens.get(*at + 1).is_some_and(|token| token == ":")
                        && let Some(word) = tokens.get(*at + 2)
                    {
                        path.push(word.clone());
                        *at += 3;
                    }
                    if path.len() > 1 {
                        self.modules.entry(name.to_vec()).or_default().paths.push(path);
                    }
                }
                _ => {}
            }
        }
    }

    /// The module that holds what `path` means in the module `from`.
    fn resolve(&self, from: &[String], path: &[String], hops: usize) -> Name {
        let mut module = from.to_vec();
        for (index, word) in path.iter().enumerate() {
            match word.as_str() {
                "crate" if index == 0 => module.clear(),
                "self" => {}
                "super" => {
                    module.pop();
                }
                _ => {
                    let inner = [&module[..], std::slice::from_ref(word)].concat();
                    if self.modules.contains_key(&inner) {
                        module = inner;
                        continue;
                    }
                    let imports =
                        self.modules.get(&module).map(|module| &module.imports[..]).unwrap_or_default();
                    let import = imports.iter().find(|(_, name)| name == word);
                    return match import {
                        Some((path, _)) if hops > 0 && self.is_ours(&module, path) => {
                            self.resolve(&module, path, hops - 1)
                        }
                        _ => module,
                    };
                }
            }
        }
        module
    }

    /// True if a path leads to something of this crate.
    fn is_ours(&self, from: &[String], path: &[String]) -> bool {
        path.first().is_some_and(|first| {
            ["crate", "super", "self"].contains(&first.as_str())
                || self.modules.contains_key(&[from, std::slice::from_ref(first)].concat())
        })
    }

    /// For each module, the siblings that it or what is inside it imports.
    fn edges(&self) -> BTreeMap<Name, BTreeSet<Name>> {
        let mut edges: BTreeMap<Name, BTreeSet<Name>> = BTreeMap::new();
        for (name, module) in &self.modules {
            for path in &module.paths {
                let target = self.resolve(name, path, 8);
                let common = name.iter().zip(&target).take_while(|(a, b)| a == b).count();
                if name.len() > common && target.len() > common {
                    edges.entry(name[..=common].to_vec()).or_default().insert(target[..=common].to_vec());
                }
            }
        }
        edges
    }

    /// Every module that imports itself by way of others.
    fn circular(&self) -> BTreeSet<String> {
        let edges = self.edges();
        let reaches_itself = |start: &&Name| {
            let (mut seen, mut next) = (BTreeSet::new(), vec![*start]);
            while let Some(module) = next.pop() {
                next.extend(edges.get(module).into_iter().flatten().filter(|target| seen.insert(*target)));
            }
            seen.contains(*start)
        };
        edges.keys().filter(reaches_itself).map(|name| name.join("::")).collect()
    }
}

fn read(name: &str) -> Crate {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("src");
    let root = ["lib.rs", "main.rs"].map(|file| folder.join(file)).into_iter().find(|file| file.exists());
    let mut found = Crate::default();
    found.read(&[], &root.unwrap_or_else(|| panic!("crates/{name} has no root")), &folder);
    found
}

fn crates() -> BTreeSet<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let entries = fs::read_dir(folder).expect("the crates are there");
    let names =
        entries.map(|entry| entry.expect("a folder can be read").file_name().to_string_lossy().into_owned());
    names.filter(|name| folder_has_manifest(name)).collect()
}

fn folder_has_manifest(name: &str) -> bool {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name).join("Cargo.toml").exists()
}

/// Modules in a folder that are a file beside the folder of those inside them.
fn files_beside_folders(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder can be read") {
        let path = entry.expect("a folder can be read").path();
        if path.is_dir() {
            files_beside_folders(&path, found);
            let file = path.with_extension("rs");
            if file.exists() {
                found.insert(file);
            }
        }
    }
}

#[test]
fn a_module_with_others_inside_it_is_in_their_folder() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeSet::new();
    for name in self::crates() {
        files_beside_folders(&crates.join(name).join("src"), &mut found);
    }
    assert!(found.is_empty(), "these modules have a folder, and belong into it as mod.rs: {found:?}");
}

fn example(sources: &[(&str, &str)]) -> Vec<String> {
    let mut found = Crate::default();
    for (name, source) in sources {
        let name: Name = name.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        found.add(&name, source);
    }
    found.circular().into_iter().collect()
}

#[test]
fn circles_are_found_however_the_imports_are_written() {
    let root = ("", "mod a;\nmod b;\nmod c;\npub use b::{B, Other as Renamed};\nuse c::*;");
    let b = ("b", "use crate::c::C;\npub struct B;");
    let circle: &[&str] = &["a", "b", "c"];
    for closing in [
        "use crate::a::A;",
        "use crate::{ROOT, a::A};",
        "use std::fmt;\nuse super::a::{self, A};",
        "fn f() { crate::a::f::<'a', \"}\">(b'{', r#\"{\"#); }",
        "mod inner { fn f() -> super::super::a::A {} }",
        "// }\n/* { */ impl<'a> T for C<'a> { type A = crate::a::A; }",
    ] {
        let c = ("c", closing);
        for first in ["use crate::B;", "use crate::Renamed;", "use crate::b::B as _;", "fn f(b: super::B) {}"]
        {
            assert_eq!(example(&[root, ("a", first), b, c]), circle, "{first} {closing}");
        }
        assert_eq!(example(&[root, ("a", "use std::fmt;"), b, c]), [""; 0], "{closing}");
    }
}

#[test]
fn parents_and_tests_and_comments_make_no_circle() {
    for closing in [
        "// use crate::a::A;\n/// crate::a::A\nfn f() { let text = \"crate::a::A\"; }",
        "#[cfg(test)]\nmod tests { use crate::a::A; }",
        "#[cfg(test)]\nuse crate::a::{A, f};",
        "#[cfg(test)]\nimpl C { fn f() { crate::a::f(); } }",
        "use super::ROOT;",
        "mod a { pub struct A; }\nuse self::a::A;\nuse a::A as B;",
    ] {
        let root = ("", "mod a;\nmod c;\nconst ROOT: u8 = 0;");
        assert_eq!(example(&[root, ("a", "use crate::c::C;"), ("c", closing)]), [""; 0], "{closing}");
    }
    let parent = ("p", "mod child;\nuse child::Child;\npub struct Parent;");
    assert_eq!(example(&[("", "mod p;"), parent, ("p::child", "use super::Parent;")]), [""; 0]);
    let inside = [("p::child", "use crate::q::Q;"), ("q", "use crate::p::Parent;")];
    assert_eq!(example(&[("", "mod p; mod q;"), parent, inside[0], inside[1]]), ["p", "q"]);
}

#[test]
fn no_module_imports_itself_by_way_of_others() {
    let mut wrong = Vec::new();
    for name in crates() {
        let found = read(&name);
        let circular = found.circular();
        let edges = found.edges();
        for module in &circular {
            let parts: Name = module.split("::").map(str::to_owned).collect();
            let imports =
                edges[&parts].iter().map(|name| name.join("::")).filter(|name| circular.contains(name));
            let imports: Vec<_> = imports.collect();
            wrong.push(format!(
                "crates/{name}: {module} is in a circle of imports, through {}",
                imports.join(", ")
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
