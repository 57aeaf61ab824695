//! The image formats that are stored and served, detected from the bytes. Formats that can contain scripts are
//! excluded.

/// A supported image format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageFormat {
    Png,
    Jpeg,
    Webp,
}

impl ImageFormat {
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
        }
    }

    /// The extension of a file name.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Webp => "webp",
        }
    }

    pub fn from_extension(extension: &str) -> Option<Self> {
        [Self::Png, Self::Jpeg, Self::Webp].into_iter().find(|format| format.extension() == extension)
    }

    /// The format, width and height of an image; `None` for anything else.
    pub fn detect(bytes: &[u8]) -> Option<(Self, u32, u32)> {
        let format = match imagesize::image_type(bytes).ok()? {
            imagesize::ImageType::Png => Self::Png,
            imagesize::ImageType::Jpeg => Self::Jpeg,
            imagesize::ImageType::Webp => Self::Webp,
            _ => return None,
        };
        let size = imagesize::blob_size(bytes).ok()?;
        let side = |side: usize| u32::try_from(side).ok().filter(|side| *side > 0);
        Some((format, side(size.width)?, side(size.height)?))
    }
}
