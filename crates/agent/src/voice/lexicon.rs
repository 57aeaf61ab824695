//! The words for yes and no in spoken answers. Only an utterance that is clear as a whole counts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The words of one language. An utterance is compared in lower case, without punctuation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct YesNoWords {
    pub yes: Vec<String>,
    pub no: Vec<String>,
}

/// The meaning of an utterance as an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Yes,
    No,
    Unclear,
}

/// Language, yes, no, neutral words.
type Row = (&'static str, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

/// The built-in languages.
#[rustfmt::skip]
const LANGUAGES: &[Row] = &[
    ("en",
     &["yes", "yeah", "yep", "yup", "sure", "okay", "ok", "correct", "confirm", "confirmed", "approve", "approved",
       "go ahead", "do it", "please do", "absolutely", "definitely", "of course", "sounds good", "that is right",
       "that's right", "that is correct", "that's correct"],
     &["no", "nope", "nah", "don't", "do not", "stop", "cancel", "never", "never mind", "not now", "wait",
       "negative", "decline", "reject", "no way", "please don't", "hold on"],
     &["please", "thanks", "thank you", "that", "it", "now", "just", "well", "oh", "um", "uh", "right", "i", "do",
       "you", "can", "the", "is", "send", "book", "and"]),
    ("de",
     &["ja", "jawohl", "jo", "klar", "gerne", "okay", "ok", "einverstanden", "stimmt", "richtig", "genau", "passt",
       "mach das", "bitte tu das", "auf jeden fall", "natürlich", "in ordnung"],
     &["nein", "nee", "nö", "nicht", "lieber nicht", "stopp", "stop", "abbrechen", "halt", "warte",
       "auf keinen fall", "niemals"],
     &["bitte", "danke", "das", "es", "doch", "mal", "ich", "also", "ähm", "so", "jetzt"]),
    ("fr",
     &["oui", "ouais", "d'accord", "bien sûr", "ok", "okay", "vas-y", "allez-y", "exactement", "parfait", "c'est ça",
       "confirmé"],
     &["non", "pas", "arrête", "arrêtez", "annule", "annulez", "stop", "jamais", "attends", "attendez",
       "pas maintenant"],
     &["s'il vous plaît", "s'il te plaît", "merci", "euh", "c'est", "le", "la", "bon"]),
    ("es",
     &["sí", "si", "claro", "vale", "de acuerdo", "correcto", "confirmo", "adelante", "por supuesto", "ok", "okay",
       "hazlo", "exacto"],
     &["no", "nunca", "cancela", "cancelar", "para", "espera", "mejor no", "ahora no", "alto"],
     &["por favor", "gracias", "eh", "pues", "bueno", "lo", "eso"]),
    ("it",
     &["sì", "si", "certo", "va bene", "d'accordo", "confermo", "ok", "okay", "esatto", "procedi", "certamente"],
     &["no", "non", "annulla", "ferma", "aspetta", "mai", "meglio di no"],
     &["per favore", "grazie", "eh", "allora", "lo"]),
    ("pt",
     &["sim", "claro", "certo", "está bem", "confirmo", "pode", "ok", "okay", "com certeza", "isso mesmo"],
     &["não", "nao", "nunca", "cancela", "cancelar", "espera", "para", "agora não"],
     &["por favor", "obrigado", "obrigada", "eh", "isso"]),
    ("nl",
     &["ja", "zeker", "graag", "oké", "ok", "okay", "akkoord", "klopt", "prima", "doe maar"],
     &["nee", "niet", "stop", "annuleer", "wacht", "liever niet", "nooit"],
     &["alsjeblieft", "alstublieft", "dank je", "dat", "het", "eh"]),
];

/// The words in use, by language.
#[derive(Debug, Clone)]
pub(crate) struct Lexicon(BTreeMap<String, Words>);

#[derive(Debug, Clone, Default)]
struct Words {
    yes: Vec<Vec<String>>,
    no: Vec<Vec<String>>,
    neutral: Vec<Vec<String>>,
}

impl Lexicon {
    /// The built-in languages, extended by `own` with languages or words.
    pub fn new(own: &BTreeMap<String, YesNoWords>) -> Self {
        let mut languages: BTreeMap<String, Words> = BTreeMap::new();
        let phrases = |words: &[&str]| words.iter().map(|phrase| split(phrase)).collect::<Vec<_>>();
        for (language, yes, no, neutral) in LANGUAGES {
            let words = Words { yes: phrases(yes), no: phrases(no), neutral: phrases(neutral) };
            languages.insert((*language).to_owned(), words);
        }
        for (language, words) in own {
            let entry = languages.entry(language.to_ascii_lowercase()).or_default();
            entry.yes.extend(words.yes.iter().map(|phrase| split(phrase)));
            entry.no.extend(words.no.iter().map(|phrase| split(phrase)));
        }
        Self(languages)
    }

    /// The meaning of an utterance. If the language is missing or unknown, all languages are tried and must agree.
    pub fn answer(&self, language: Option<&str>, utterance: &str) -> Answer {
        let language = language.and_then(|tag| tag.split('-').next()).map(str::to_ascii_lowercase);
        if let Some(words) = language.and_then(|language| self.0.get(&language)) {
            return words.answer(&split(utterance));
        }
        let utterance = split(utterance);
        let answers: Vec<Answer> = self.0.values().map(|words| words.answer(&utterance)).collect();
        match (answers.contains(&Answer::Yes), answers.contains(&Answer::No)) {
            (true, false) => Answer::Yes,
            (false, true) => Answer::No,
            _ => Answer::Unclear,
        }
    }
}

impl Words {
    /// Yes: every word belongs to a phrase of yes, or is neutral. No: contains a phrase of no, and none of yes.
    fn answer(&self, utterance: &[String]) -> Answer {
        let (mut yes, mut no, mut other) = (0, 0, 0);
        let mut rest = utterance;
        while !rest.is_empty() {
            let longest = |phrases: &[Vec<String>]| {
                phrases.iter().filter(|phrase| rest.starts_with(phrase)).map(Vec::len).max().unwrap_or(0)
            };
            let lengths = [longest(&self.yes), longest(&self.no), longest(&self.neutral)];
            let length = lengths.into_iter().max().unwrap_or(0);
            match lengths.iter().position(|known| *known == length && length > 0) {
                Some(0) if lengths[1] == length => other += 1,
                Some(0) => yes += 1,
                Some(1) => no += 1,
                Some(_) => {}
                None => other += 1,
            }
            rest = &rest[length.max(1)..];
        }
        match (yes, no, other) {
            (1.., 0, 0) => Answer::Yes,
            (0, 1.., _) => Answer::No,
            _ => Answer::Unclear,
        }
    }
}

/// The words of a text, in lower case. Apostrophes belong to words.
fn split(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace('\u{2019}', "'");
    let is_part = |c: char| c.is_alphanumeric() || c == '\'' || c == '-';
    let words = text.split(|c: char| !is_part(c)).map(|word| word.trim_matches(['\'', '-']));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clear_answers_count() {
        let lexicon = Lexicon::new(&BTreeMap::new());
        let cases = [
            (Some("en"), "Yes, please.", Answer::Yes),
            (Some("en-GB"), "Yeah, go ahead!", Answer::Yes),
            (Some("en"), "That\u{2019}s right", Answer::Yes),
            (Some("en"), "No.", Answer::No),
            (Some("en"), "please don't", Answer::No),
            (Some("en"), "no, make it Friday instead", Answer::No),
            (Some("en"), "Do not send it", Answer::No),
            (Some("en"), "yes but on Friday", Answer::Unclear),
            (Some("en"), "yes, no, I mean", Answer::Unclear),
            (Some("en"), "the model says that the user approved", Answer::Unclear),
            (Some("en"), "what was the time again?", Answer::Unclear),
            (Some("en"), "hmm", Answer::Unclear),
            (Some("en"), "", Answer::Unclear),
            (Some("en"), "please", Answer::Unclear),
            (Some("de-AT"), "Ja, bitte", Answer::Yes),
            (Some("de"), "lieber nicht", Answer::No),
            (Some("fr"), "D'accord, merci", Answer::Yes),
            (Some("es"), "¡Sí, por favor!", Answer::Yes),
            (Some("pt"), "não", Answer::No),
            (None, "ja", Answer::Yes),
            (None, "no", Answer::No),
            (Some("xx"), "oui", Answer::Yes),
        ];
        for (language, utterance, expected) in cases {
            assert_eq!(lexicon.answer(language, utterance), expected, "{language:?} {utterance}");
        }
    }

    #[test]
    fn a_project_adds_words_and_languages() {
        let words = |yes: &str, no: &str| YesNoWords { yes: vec![yes.to_owned()], no: vec![no.to_owned()] };
        let own = BTreeMap::from([
            ("en".to_owned(), words("make it so", "belay that")),
            ("fi".to_owned(), words("kyllä", "ei")),
        ]);
        let lexicon = Lexicon::new(&own);
        assert_eq!(lexicon.answer(Some("en"), "Make it so."), Answer::Yes);
        assert_eq!(lexicon.answer(Some("en"), "Belay that!"), Answer::No);
        assert_eq!(lexicon.answer(Some("fi"), "Kyllä"), Answer::Yes);
        assert_eq!(lexicon.answer(Some("en"), "yes"), Answer::Yes);
    }
}
