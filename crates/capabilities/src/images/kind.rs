//! What a picture is, told by its bytes: an endpoint's word for it is not taken. Types that can carry scripts are none.

/// The types that are kept and served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Png,
    Jpeg,
    Webp,
}

const KINDS: &[Kind] = &[Kind::Png, Kind::Jpeg, Kind::Webp];

impl Kind {
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
        }
    }

    /// The ending of a file's name.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Webp => "webp",
        }
    }

    /// By the ending of a file's name.
    pub fn of_ending(ending: &str) -> Option<Self> {
        KINDS.iter().copied().find(|kind| kind.ending() == ending)
    }

    /// The kind, width and height of a picture; nothing for anything else.
    pub fn of(bytes: &[u8]) -> Option<(Self, u32, u32)> {
        let kind = match imagesize::image_type(bytes).ok()? {
            imagesize::ImageType::Png => Self::Png,
            imagesize::ImageType::Jpeg => Self::Jpeg,
            imagesize::ImageType::Webp => Self::Webp,
            _ => return None,
        };
        let size = imagesize::blob_size(bytes).ok()?;
        let side = |side: usize| u32::try_from(side).ok().filter(|side| *side > 0);
        Some((kind, side(size.width)?, side(size.height)?))
    }
}
