use super::*;

#[test]
fn only_the_first_level_one_heading_is_removed() {
    let text = "intro\n\n```\n# not a title\n```\n\n# Title\n\nbody\n\n# Second\n";
    assert_eq!(without_title(text), "intro\n\n```\n# not a title\n```\n\n\nbody\n\n# Second");
    assert_eq!(without_title("# Core\nBe kind.\n"), "Be kind.");
    assert_eq!(without_title("## Section\n"), "## Section");
}
