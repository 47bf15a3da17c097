//! Headings and links of Markdown pages.

use super::Complaint;
use super::checkout::{Checkout, SourceFile};

/// Pages without exactly one title, and links that lead nowhere.
pub fn complaints(checkout: &Checkout) -> Vec<Complaint> {
    let pages = checkout.files.iter().filter(|file| file.ending() == "md");
    pages
        .flat_map(|page| {
            let mut found: Vec<Complaint> = title(page).into_iter().collect();
            found.extend(dead_links(checkout, page));
            found
        })
        .collect()
}

/// Lines outside fenced code, with their number.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

fn title(page: &SourceFile) -> Option<Complaint> {
    let count = prose(&page.text)
        .filter(|(_, line)| line.starts_with("# "))
        .count();
    let message = format!("{count} titles (`# `); a page has one");
    (count != 1).then(|| Complaint::new(&page.path, 1, "title", message))
}

fn dead_links(checkout: &Checkout, page: &SourceFile) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (number, line) in prose(&page.text) {
        for target in targets(line) {
            if let Some(problem) = problem(checkout, page, target) {
                let message = format!("{target}: {problem}");
                found.push(Complaint::new(&page.path, number, "dead-link", message));
            }
        }
    }
    found
}

/// What stands in the parentheses of `[text](target)`, links to other sites aside.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| {
        let target = rest.split([')', ' ']).next()?;
        (!target.contains("://") && !target.starts_with("mailto:")).then_some(target)
    })
}

fn problem(checkout: &Checkout, page: &SourceFile, target: &str) -> Option<&'static str> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if path.is_empty() {
        page.path.clone()
    } else {
        resolve(&page.path, path)
    };
    let folder = format!("{}/", path.trim_end_matches('/'));
    if checkout.files.iter().any(|file| file.path.starts_with(&folder)) {
        return None;
    }
    let Some(file) = checkout.find(&path) else {
        return Some("no such file in the project");
    };
    let known = anchor.is_empty() || file.ending() != "md" || anchors(&file.text).any(|own| own == anchor);
    (!known).then_some("no such heading there")
}

/// `target` as seen from the folder of `page`, from the top of the checkout.
fn resolve(page: &str, target: &str) -> String {
    let mut parts: Vec<&str> = page.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "." | "" => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

/// Names of headings as links spell them.
fn anchors(text: &str) -> impl Iterator<Item = String> {
    let headings = prose(text).filter(|(_, line)| line.starts_with('#'));
    headings.map(|(_, line)| {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(files: &[(&str, &str)]) -> Vec<String> {
        complaints(&Checkout::of(files))
            .iter()
            .map(Complaint::text)
            .collect()
    }

    #[test]
    fn a_page_has_one_title() {
        assert!(texts(&[("a.md", "# A\n\n```\n# not a title\n```\n")]).is_empty());
        assert_eq!(
            texts(&[("a.md", "# A\n\n# B\n")]),
            ["a.md:1: title: 2 titles (`# `); a page has one"]
        );
        assert_eq!(texts(&[("a.md", "words\n")]).len(), 1);
    }

    #[test]
    fn links_lead_to_files_folders_and_headings() {
        let page =
            "# A\n\n[b](../b.md#two-words) [top](#a) [folder](../docs) [site](https://example.org/x)\n";
        let files = [("docs/a.md", page), ("b.md", "# B\n\n## Two words\n")];
        assert_eq!(texts(&files), Vec::<String>::new());
    }

    #[test]
    fn links_that_lead_nowhere_are_named() {
        let page = "# A\n\n[b](b.md)\n[c](#nowhere)\n";
        assert_eq!(
            texts(&[("docs/a.md", page)]),
            [
                "docs/a.md:3: dead-link: b.md: no such file in the project",
                "docs/a.md:4: dead-link: #nowhere: no such heading there"
            ]
        );
    }
}
