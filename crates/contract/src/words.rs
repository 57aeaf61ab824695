//! One macro for closed sets of words that appear on the wire: a row a word, the compiler shows the rest.

/// Declares a fieldless enum whose variants are spelled exactly one way everywhere.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $name { $($(#[$doc])* #[serde(rename = $text)] $variant),+ }

        impl $name {
            /// Every word of the set, in declaration order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];
            /// The spellings of [`Self::ALL`], in the same order.
            pub const WORDS: &'static [&'static str] = &[$($text),+];

            /// The word as it is spelled on every wire.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The word with this exact spelling, if there is one.
            pub fn from_word(word: &str) -> Option<Self> {
                match word { $($text => Some(Self::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use words;
