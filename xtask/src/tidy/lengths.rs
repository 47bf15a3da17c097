//! Lengths of functions and files, each alone and functions as a whole.

use super::Complaint;
use super::checkout::{Checkout, SourceFile};
use super::code;

const FUNCTION_LINES: usize = 70;
/// Half of all functions are at most this long, and nine in ten at most that.
const MEDIAN_LINES: usize = 10;
const NINE_IN_TEN_LINES: usize = 40;
const FILE_LINES: usize = 600;

/// Functions and files that are too long.
pub fn complaints(checkout: &Checkout) -> Vec<Complaint> {
    let written = || checkout.files.iter().filter(|file| !file.is_generated());
    let mut found: Vec<Complaint> = written().flat_map(of_file).collect();
    for (language, ending) in [("Rust", "rs"), ("Python", "py")] {
        let of_language = written().filter(|file| file.ending() == ending);
        let mut lengths: Vec<usize> = of_language
            .flat_map(functions)
            .map(|function| function.lines)
            .collect();
        lengths.sort_unstable();
        found.extend(spread(language, &lengths));
    }
    found
}

/// A complaint if functions of a language, in order of their length, are too long as a whole.
fn spread(language: &str, lengths: &[usize]) -> Option<Complaint> {
    let median = *lengths.get(lengths.len() / 2)?;
    let nine_in_ten = lengths[lengths.len() * 9 / 10];
    let message = format!(
        "functions in {language}: median {median} lines, nine in ten up to {nine_in_ten}; allowed are \
         {MEDIAN_LINES} and {NINE_IN_TEN_LINES}"
    );
    let wrong = median > MEDIAN_LINES || nine_in_ten > NINE_IN_TEN_LINES;
    wrong.then(|| Complaint::new("STYLE.md", 1, "function-lengths", message))
}

fn functions(file: &SourceFile) -> Vec<Function> {
    match file.ending() {
        "rs" => rust_functions(&code::rust(&file.text)),
        "py" => python_functions(&code::python(&file.text)),
        _ => Vec::new(),
    }
}

fn of_file(file: &SourceFile) -> Vec<Complaint> {
    let long = functions(file)
        .into_iter()
        .filter(|function| function.lines > FUNCTION_LINES);
    let mut found: Vec<Complaint> = long.map(|function| function.complaint(&file.path)).collect();
    let lines = file.text.lines().count();
    let counts = matches!(file.ending(), "rs" | "py" | "sh" | "js" | "css" | "html" | "j2");
    if counts && lines > FILE_LINES {
        let message = format!("{lines} lines; allowed are {FILE_LINES}: split it by noun");
        found.push(Complaint {
            size: lines,
            ..Complaint::new(&file.path, 1, "file-length", message)
        });
    }
    found
}

#[derive(Debug, PartialEq, Eq)]
struct Function {
    name: String,
    line: usize,
    lines: usize,
}

impl Function {
    fn complaint(self, path: &str) -> Complaint {
        let message = format!(
            "{} has {} lines; allowed are {FUNCTION_LINES}",
            self.name, self.lines
        );
        Complaint {
            size: self.lines,
            ..Complaint::new(path, self.line, "function-length", message)
        }
    }
}

fn name_at(code: &str) -> String {
    code.trim_start()
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

/// Every function with a body, from the line of its `fn` to its closing brace.
fn rust_functions(code: &str) -> Vec<Function> {
    let bodies = code::positions(code, "fn").filter_map(|at| {
        let name = name_at(&code[at + 2..]);
        // A type `fn(u8)` has no name, and a declaration without a body no length.
        let length = body_end(&code[at..]).filter(|_| !name.is_empty())?;
        let lines = code[at..at + length].matches('\n').count() + 1;
        let line = code::line_of(code, at);
        Some(Function { name, line, lines })
    });
    bodies.collect()
}

/// Bytes to the end of the function's body; none if a semicolon comes first.
fn body_end(code: &str) -> Option<usize> {
    let (mut brackets, mut braces) = (0_usize, 0_usize);
    for (index, c) in code.char_indices() {
        match c {
            '(' | '[' => brackets += 1,
            ')' | ']' => brackets = brackets.saturating_sub(1),
            ';' if braces == 0 && brackets == 0 => return None,
            '{' => braces += 1,
            '}' if braces == 1 => return Some(index + 1),
            '}' => braces = braces.saturating_sub(1),
            _ => {}
        }
    }
    None
}

/// Every function, from its `def` to its last line with code.
fn python_functions(code: &str) -> Vec<Function> {
    let lines: Vec<&str> = code.lines().collect();
    let starts = lines.iter().enumerate().filter_map(|(index, line)| {
        let word = line
            .trim_start()
            .strip_prefix("async ")
            .unwrap_or(line.trim_start());
        word.strip_prefix("def ").map(|rest| (index, name_at(rest)))
    });
    starts
        .map(|(index, name)| Function {
            name,
            line: index + 1,
            lines: python_length(&lines[index..]),
        })
        .collect()
}

/// Lines of the function that starts on the first of `lines`.
fn python_length(lines: &[&str]) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let (mut opened, mut closed) = (0, 0);
    let mut length = 1;
    for (index, line) in lines.iter().enumerate() {
        let in_signature = index == 0 || opened > closed;
        let blank = line.trim().is_empty();
        if !in_signature && !blank && indent(line) <= indent(lines[0]) {
            break;
        }
        opened += line.matches(['(', '[', '{']).count();
        closed += line.matches([')', ']', '}']).count();
        if !blank {
            length = index + 1;
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaints_of(path: &str, text: &str) -> Vec<String> {
        let short_ones = "def a(): b()\n".repeat(19);
        complaints(&Checkout::of(&[
            (path, text),
            ("b.py", &short_ones),
            ("b.rs", &short_ones.replace("def a(): b()", "fn a() {}")),
        ]))
        .into_iter()
        .map(|complaint| complaint.text())
        .collect()
    }

    #[test]
    fn a_long_rust_function_is_named_with_its_line() {
        let body = "    a();\n".repeat(69);
        let fits = format!("fn short() {{\n{}}}\n", "    a();\n".repeat(68));
        assert!(complaints_of("a.rs", &fits).is_empty());
        let text = format!("{fits}fn long(x: [u8; 4]) -> [u8; 2] {{\n{body}}}\n");
        assert_eq!(
            complaints_of("a.rs", &text),
            ["a.rs:71: function-length: long has 71 lines; allowed are 70"]
        );
    }

    #[test]
    fn declarations_and_function_types_are_no_functions() {
        let code = "trait T { fn a(&self, x: [u8; 4]); }\ntype F = fn(u8) -> u8;\n";
        assert_eq!(rust_functions(code), []);
    }

    #[test]
    fn a_long_python_function_is_named() {
        let text = format!(
            "def long(\n    a,\n) -> None:\n{}\n\nb = 1\n",
            "    c()\n".repeat(68)
        );
        assert_eq!(
            complaints_of("a.py", &text),
            ["a.py:1: function-length: long has 71 lines; allowed are 70"]
        );
    }

    #[test]
    fn a_python_function_ends_where_its_indentation_does() {
        let code = "class A:\n    def a(\n        self,\n    ) -> None:\n        b()\n\n    def c(self): d()\n\ne = 1\n";
        let lengths: Vec<usize> = python_functions(code)
            .iter()
            .map(|function| function.lines)
            .collect();
        assert_eq!(lengths, [4, 1]);
    }

    #[test]
    fn functions_that_are_long_as_a_whole_are_a_complaint() {
        let short = [3; 80];
        let mut lengths = short.to_vec();
        assert_eq!(spread("Rust", &lengths), None);
        lengths.extend([41; 10]);
        assert!(
            spread("Rust", &lengths)
                .unwrap()
                .message
                .contains("nine in ten up to 41")
        );
        assert!(spread("Rust", &[11; 5]).unwrap().message.contains("median 11"));
        assert_eq!(spread("Rust", &[]), None);
    }

    #[test]
    fn a_long_file_is_named_and_a_generated_one_is_not() {
        let text = "a = 1\n".repeat(601);
        assert_eq!(
            complaints_of("a.py", &text),
            ["a.py:1: file-length: 601 lines; allowed are 600: split it by noun"]
        );
        assert!(complaints_of("a.py", &format!("# Made by `cargo xtask gen`\n{text}")).is_empty());
    }
}
