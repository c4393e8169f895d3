//! Colours, dashes, markers and hatching. Every series is distinguished twice: by colour, and by marker and dash; bars by hatching.
//!
//! The hues come from Okabe and Ito, Color Universal Design (2008), and are distinguishable with any colour
//! vision. Each is dark enough for a label in it: a contrast of 4.5 to 1 against white paper (WCAG 2.2, 1.4.3).

use super::hatch::Hatch;

/// Colours of the series in order; they repeat with other dashes.
pub(super) const SERIES: [&str; 7] = [
    "#0072b2", "#ba5100", "#007a5e", "#a8508b", "#936500", "#2f74a3", "#4d4d4d",
];
/// The colours for dark paper.
pub(super) const SERIES_DARK: [&str; 7] = [
    "#56b4e9", "#f0803c", "#2fbf96", "#d88fbf", "#e6b03c", "#8cc8ee", "#b8b8b8",
];
/// Text and axes.
pub(super) const INK: &str = "#222222";
/// Secondary text and marks.
pub(super) const MUTED: &str = "#5f5f5f";
/// Lines of the grid.
pub(super) const GRID: &str = "#e4e4e4";
/// The paper.
pub(super) const PAPER: &str = "#ffffff";
/// Ink, muted ink, grid and paper on dark paper.
pub(super) const INK_DARK: &str = "#e6e6e6";
pub(super) const MUTED_DARK: &str = "#a8a8a8";
pub(super) const GRID_DARK: &str = "#34373c";
pub(super) const PAPER_DARK: &str = "#15171a";

/// Dashes of the lines, in points. Together with the markers they distinguish the first twelve series even in grey.
const DASHES: [&str; 4] = ["", "4 1.6", "1.2 1.6", "6 1.6 1.2 1.6"];

/// Shape of a point. Each encloses an area, so that it can be hollow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    TriangleDown,
    Cross,
    Plus,
}

const MARKERS: [Marker; 7] = [
    Marker::Circle,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::TriangleDown,
    Marker::Cross,
    Marker::Plus,
];

const HATCHES: [Hatch; 4] = [Hatch::Plain, Hatch::Rising, Hatch::Falling, Hatch::Crossed];

/// Index of the colour of a series.
pub(super) fn colour(place: usize) -> usize {
    place % SERIES.len()
}

/// Dash of the line of a series; empty for a solid one. Consecutive series differ, so that their lines are distinguishable
/// without colour.
pub(super) fn dash(place: usize) -> &'static str {
    DASHES[place % DASHES.len()]
}

/// Hatching of the bars of a series. Consecutive series differ, and so do series of the same or of a similar
/// colour.
pub(super) fn hatch(place: usize) -> Hatch {
    HATCHES[place % HATCHES.len()]
}

/// Marker of a series: shifted by one in each round through the colours, so that points without a line differ.
pub(super) fn marker(place: usize) -> Marker {
    MARKERS[(place + place / SERIES.len()) % MARKERS.len()]
}

/// Colour for a share, for heat maps: lightness decreases evenly, so that it is readable in grey.
pub(super) fn shade(share: f64) -> String {
    // Three colours of ColorBrewer's YlGnBu (Brewer, 2003), interpolated.
    const STOPS: [[f64; 3]; 3] = [
        [247.0, 251.0, 222.0],
        [65.0, 171.0, 196.0],
        [12.0, 44.0, 110.0],
    ];
    let place = share.clamp(0.0, 1.0) * 2.0;
    let (from, to, part) = if place < 1.0 {
        (STOPS[0], STOPS[1], place)
    } else {
        (STOPS[1], STOPS[2], place - 1.0)
    };
    let mix = |i: usize| (from[i] + (to[i] - from[i]) * part).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

/// Red, green and blue of a colour written `#rrggbb`.
pub(super) fn channels(colour: &str) -> [u8; 3] {
    [1, 3, 5].map(|at| {
        let hex = colour.get(at..at + 2);
        hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())
            .unwrap_or(0)
    })
}

/// Relative luminance of a colour written `#rrggbb`, 0 to 1 (WCAG 2.2, "relative luminance").
pub(super) fn luminance(colour: &str) -> f64 {
    let [red, green, blue] = channels(colour).map(|channel| {
        let value = f64::from(channel) / 255.0;
        if value <= 0.040_45 {
            value / 12.92
        } else {
            ((value + 0.055) / 1.055).powf(2.4)
        }
    });
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

/// Contrast of two luminances, 1 to 21 (WCAG 2.2, "contrast ratio").
pub(super) fn contrast(a: f64, b: f64) -> f64 {
    (a.max(b) + 0.05) / (a.min(b) + 0.05)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_stands_out_from_its_paper() {
        let light = SERIES.iter().chain([&INK, &MUTED]);
        let dark = SERIES_DARK.iter().chain([&INK_DARK, &MUTED_DARK]);
        let on = |paper| move |colour| (colour, paper);
        for (colour, paper) in light.map(on(PAPER)).chain(dark.map(on(PAPER_DARK))) {
            let contrast = contrast(luminance(colour), luminance(paper));
            assert!(contrast >= 4.5, "{colour} on {paper}: {contrast:.2}");
        }
    }

    #[test]
    fn twelve_series_differ_without_colour() {
        let mut looks: Vec<(&str, Marker)> = (0..12).map(|i| (dash(i), marker(i))).collect();
        looks.dedup();
        assert_eq!(looks.len(), 12);
        for i in 0..12 {
            assert!(!looks[..i].contains(&looks[i]), "{i}");
            assert!(
                i == 0 || dash(i) != dash(i - 1),
                "lines {i} and the one before"
            );
        }
    }

    #[test]
    fn the_bars_of_twenty_eight_series_differ() {
        let looks: Vec<(usize, Hatch)> = (0..28).map(|i| (colour(i), hatch(i))).collect();
        for i in 1..28 {
            assert!(!looks[..i].contains(&looks[i]), "{i}");
            assert!(hatch(i) != hatch(i - 1), "bars {i} and the one before");
        }
        // The two blues.
        assert_ne!(hatch(0), hatch(5));
    }
}
