use super::*;

#[test]
fn a_template_is_split_into_text_arguments_and_variables() {
    let template = Template::parse("a{b}c${D}{e f}{");
    let expected = [
        TemplatePart::Text("a".to_owned()),
        TemplatePart::Argument("b".to_owned()),
        TemplatePart::Text("c".to_owned()),
        TemplatePart::Variable("D".to_owned()),
        TemplatePart::Text("{e f}{".to_owned()),
    ];
    assert_eq!(template.pieces(), expected);
    assert_eq!(Template::parse("{x}").only_argument(), Some("x"));
    assert_eq!(Template::parse("").pieces(), []);
}
