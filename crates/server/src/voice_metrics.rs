//! The numbers of voice sessions, for `/metrics`.

use toolwright_agent::voice::{DURATION_BOUNDS_US, Histogram, LEVEL_BOUNDS_DB, VoiceMetrics};

use crate::prometheus::Page;

/// Name, help and value.
type Counter = (&'static str, &'static str, fn(&VoiceMetrics) -> u64);

const COUNTERS: [Counter; 10] = [
    ("toolwright_voice_sessions_total", "Voice sessions that were opened.", |voice| voice.started),
    ("toolwright_voice_turns_total", "Turns of the voice model.", |voice| voice.turns),
    (
        "toolwright_voice_empty_turns_total",
        "Turns in which the model neither spoke nor called a tool.",
        |voice| voice.empty_turns,
    ),
    ("toolwright_voice_silent_turns_total", "Turns with inaudible audio.", |voice| voice.silent_turns),
    ("toolwright_voice_interruptions_total", "Answers that the user interrupted.", |voice| {
        voice.interruptions
    }),
    ("toolwright_voice_reconnects_total", "Connections to the model that were replaced.", |voice| {
        voice.reconnects
    }),
    ("toolwright_voice_failed_reconnects_total", "Attempts to connect that failed.", |voice| {
        voice.failed_reconnects
    }),
    ("toolwright_voice_resumes_total", "Connections of clients that resumed a session.", |voice| {
        voice.resumes
    }),
    ("toolwright_voice_fillers_total", "Fillers that were said while a tool ran.", |voice| voice.fillers),
    (
        "toolwright_voice_dropped_frames_total",
        "Audio frames dropped because the model was too slow.",
        |voice| voice.dropped_frames,
    ),
];

pub(crate) fn write(page: &mut Page, voice: &VoiceMetrics) {
    let escape = |name: &str| name.replace('\\', "\\\\").replace('"', "\\\"");
    let labels = format!("provider=\"{}\",model=\"{}\"", escape(&voice.provider), escape(&voice.model));
    for (name, help, value) in COUNTERS {
        page.head(name, "counter", help);
        page.line(format_args!("{name}{{{labels}}} {}", value(voice)));
    }
    page.head("toolwright_voice_sessions", "gauge", "Voice sessions that run.");
    page.line(format_args!("toolwright_voice_sessions{{{labels}}} {}", voice.running));
    page.head("toolwright_voice_ended_total", "counter", "Voice sessions that ended, by reason.");
    for (reason, count) in &voice.ended {
        page.line(format_args!("toolwright_voice_ended_total{{{labels},reason=\"{reason}\"}} {count}"));
    }
    page.head(
        "toolwright_voice_answers_total",
        "counter",
        "Spoken answers to confirmation requests, by meaning.",
    );
    for (meaning, count) in &voice.spoken_answers {
        page.line(format_args!("toolwright_voice_answers_total{{{labels},meaning=\"{meaning}\"}} {count}"));
    }
    let seconds =
        DURATION_BOUNDS_US.map(|bound| if bound == u64::MAX { f64::INFINITY } else { bound as f64 / 1e6 });
    for (name, help, durations) in [
        ("first_audio_seconds", "From the end of the user's speech to the first audio.", &voice.first_audio),
        ("tool_seconds", "From a call to its result.", &voice.tool_time),
        ("frame_seconds", "The bridge's own time for a frame of audio.", &voice.frame_time),
    ] {
        histogram(page, &format!("toolwright_voice_{name}"), help, &labels, &seconds, durations);
    }
    let name = "toolwright_voice_output_level_dbfs";
    histogram(page, name, "The level of each turn's audio.", &labels, &LEVEL_BOUNDS_DB, &voice.output_level);
}

fn histogram<const N: usize>(
    page: &mut Page,
    name: &str,
    help: &str,
    labels: &str,
    bounds: &[f64; N],
    values: &Histogram<N>,
) {
    page.head(name, "histogram", help);
    let mut below = 0;
    for (bound, count) in bounds.iter().zip(values.counts) {
        below += count;
        let bound = if bound.is_finite() { bound.to_string() } else { "+Inf".to_owned() };
        page.line(format_args!("{name}_bucket{{{labels},le=\"{bound}\"}} {below}"));
    }
    page.line(format_args!("{name}_sum{{{labels}}} {}", values.sum));
    page.line(format_args!("{name}_count{{{labels}}} {below}"));
}
