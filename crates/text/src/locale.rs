//! Date formats of five locales: the names and forms that the capabilities reference documents. A table, because ICU's
//! data would be larger than the rest of this crate.

use jiff::Zoned;

/// A supported locale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locale {
    EnUs,
    EnGb,
    DeDe,
    FrFr,
    EsEs,
}

const LOCALES: &[(&str, Locale)] = &[
    ("en-US", Locale::EnUs),
    ("en-GB", Locale::EnGb),
    ("de-DE", Locale::DeDe),
    ("fr-FR", Locale::FrFr),
    ("es-ES", Locale::EsEs),
];

/// Monday first.
const WEEKDAYS: [[&str; 7]; 4] = [
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"],
    ["Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"],
    ["lundi", "mardi", "mercredi", "jeudi", "vendredi", "samedi", "dimanche"],
    ["lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"],
];

#[rustfmt::skip]
const MONTHS: [[&str; 12]; 4] = [
    ["January", "February", "March", "April", "May", "June",
     "July", "August", "September", "October", "November", "December"],
    ["Januar", "Februar", "März", "April", "Mai", "Juni",
     "Juli", "August", "September", "Oktober", "November", "Dezember"],
    ["janvier", "février", "mars", "avril", "mai", "juin",
     "juillet", "août", "septembre", "octobre", "novembre", "décembre"],
    ["enero", "febrero", "marzo", "abril", "mayo", "junio",
     "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"],
];

impl Locale {
    pub fn from_name(name: &str) -> Option<Self> {
        LOCALES.iter().find(|(known, _)| *known == name).map(|(_, locale)| *locale)
    }

    pub fn names() -> impl Iterator<Item = &'static str> {
        LOCALES.iter().map(|(name, _)| *name)
    }

    const fn language(self) -> usize {
        match self {
            Self::EnUs | Self::EnGb => 0,
            Self::DeDe => 1,
            Self::FrFr => 2,
            Self::EsEs => 3,
        }
    }

    pub fn weekday(self, at: &Zoned) -> &'static str {
        WEEKDAYS[self.language()][usize::from(at.weekday().to_monday_zero_offset().unsigned_abs() % 7)]
    }

    fn month(self, at: &Zoned) -> &'static str {
        MONTHS[self.language()][usize::from((at.month() - 1).unsigned_abs() % 12)]
    }

    /// Day and month, without the year.
    fn day(self, at: &Zoned) -> String {
        let (day, month) = (at.day(), self.month(at));
        match self {
            Self::EnUs => format!("{month} {day}"),
            Self::EnGb | Self::FrFr => format!("{day} {month}"),
            Self::DeDe => format!("{day}. {month}"),
            Self::EsEs => format!("{day} de {month}"),
        }
    }

    pub fn date(self, at: &Zoned) -> String {
        let (day, year) = (self.day(at), at.year());
        match self {
            Self::EnUs => format!("{day}, {year}"),
            Self::EnGb | Self::DeDe | Self::FrFr => format!("{day} {year}"),
            Self::EsEs => format!("{day} de {year}"),
        }
    }

    pub fn time(self, at: &Zoned) -> String {
        let (hour, minute) = (at.hour(), at.minute());
        match self {
            Self::EnUs => {
                let half = if hour < 12 { "AM" } else { "PM" };
                format!("{}:{minute:02} {half}", (hour + 11) % 12 + 1)
            }
            Self::EsEs => format!("{hour}:{minute:02}"),
            Self::EnGb | Self::DeDe | Self::FrFr => format!("{hour:02}:{minute:02}"),
        }
    }

    pub fn short(self, at: &Zoned) -> String {
        let (day, month, year, time) = (at.day(), at.month(), at.year(), self.time(at));
        match self {
            Self::EnUs => format!("{month}/{day}/{year}, {time}"),
            Self::EnGb | Self::EsEs => format!("{day:02}/{month:02}/{year}, {time}"),
            Self::DeDe => format!("{day:02}.{month:02}.{year}, {time}"),
            Self::FrFr => format!("{day:02}/{month:02}/{year} {time}"),
        }
    }

    pub fn long(self, at: &Zoned, zone: &str) -> String {
        let (weekday, date, time) = (self.weekday(at), self.date(at), self.time(at));
        match self {
            Self::EnUs => format!("{weekday}, {date} at {time} {zone}"),
            Self::EnGb => format!("{weekday} {date} at {time} {zone}"),
            Self::DeDe => format!("{weekday}, {date} um {time} {zone}"),
            Self::FrFr => format!("{weekday} {date} à {time} {zone}"),
            Self::EsEs => format!("{weekday}, {date}, {time} {zone}"),
        }
    }

    pub fn spoken(self, at: &Zoned) -> String {
        let (weekday, day, time) = (self.weekday(at), self.day(at), self.time(at));
        match self {
            Self::EnUs => format!("{weekday}, {day} at {time}"),
            Self::EnGb => format!("{weekday} {day} at {time}"),
            Self::DeDe => format!("{weekday}, {day} um {time}"),
            Self::FrFr => format!("{weekday} {day} à {time}"),
            // One o'clock is singular.
            Self::EsEs if at.hour() == 1 => format!("{weekday} {day} a la {time}"),
            Self::EsEs => format!("{weekday} {day} a las {time}"),
        }
    }
}
