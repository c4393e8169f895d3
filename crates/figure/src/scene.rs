//! A figure as positioned items, made by layout and drawn by the writers. Coordinates are in points from the upper left corner.

pub(super) use super::frame::Frame;
use super::hatch::Hatch;
use super::palette::Marker;
use super::text;

/// A colour role.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Paint {
    /// Text, axes.
    Ink,
    /// Secondary items.
    Muted,
    /// The grid.
    Grid,
    /// The paper.
    Paper,
    /// The colour of the series around it.
    Series,
    /// A colour of its own: `#rrggbb`.
    Fixed(String),
}

/// Horizontal alignment of a text relative to its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A line of text. The position is on its baseline.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Text {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) size: f64,
    pub(super) anchor: Anchor,
    /// Rotated to read upwards.
    pub(super) upwards: bool,
    pub(super) paint: Paint,
    pub(super) text: String,
}

impl Text {
    /// Length of the text in points, by the metrics of the font.
    pub(super) fn length(&self) -> f64 {
        text::width(&self.text, self.size)
    }

    /// The part of its length before its position, points.
    fn before(&self, length: f64) -> f64 {
        match self.anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => length / 2.0,
            Anchor::End => length,
        }
    }

    /// Start of its baseline.
    pub(super) fn start(&self) -> (f64, f64) {
        let before = self.before(self.length());
        match self.upwards {
            true => (self.x, self.y + before),
            false => (self.x - before, self.y),
        }
    }

    /// The rectangle that it occupies, by the metrics of the font.
    pub(super) fn frame(&self) -> Frame {
        let length = self.length();
        let before = self.before(length);
        let (up, down) = (self.size * text::CAP_HEIGHT, self.size * text::DESCENT);
        if self.upwards {
            Frame {
                left: self.x - up,
                top: self.y + before - length,
                right: self.x + down,
                bottom: self.y + before,
            }
        } else {
            Frame {
                left: self.x - before,
                top: self.y - up,
                right: self.x - before + length,
                bottom: self.y + down,
            }
        }
    }
}

/// An item to draw.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Item {
    /// Begins a group: its class, the index of the series whose colour it has, attributes, and the description of a mark.
    Open {
        class: &'static str,
        series: Option<usize>,
        data: Vec<(&'static str, String)>,
        words: String,
    },
    /// Ends the group.
    Close,
    /// An open line through points.
    Path {
        class: &'static str,
        points: Vec<(f64, f64)>,
        width: f64,
        dash: &'static str,
        paint: Paint,
    },
    /// A closed area.
    Area {
        class: &'static str,
        points: Vec<(f64, f64)>,
        opacity: f64,
        paint: Paint,
    },
    /// A rectangle, filled and perhaps outlined in the series' colour.
    Rectangle {
        class: &'static str,
        frame: Frame,
        fill: Paint,
        outlined: bool,
    },
    /// Lines that fill a rectangle.
    Hatch {
        frame: Frame,
        hatch: Hatch,
        /// Distance of the lines along an edge, points.
        apart: f64,
        width: f64,
        paint: Paint,
    },
    /// Small equal dots.
    Dots {
        points: Vec<(f64, f64)>,
        diameter: f64,
    },
    /// The marker of a point.
    Mark {
        x: f64,
        y: f64,
        radius: f64,
        marker: Marker,
        hollow: bool,
    },
    Text(Text),
}

/// All items of a figure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scene {
    /// Width of the figure, points.
    pub(super) width: f64,
    /// Height of the figure, points.
    pub(super) height: f64,
    pub(super) items: Vec<Item>,
}

#[cfg(test)]
impl Scene {
    /// All text of it.
    pub(super) fn texts(&self) -> impl Iterator<Item = &Text> {
        self.items.iter().filter_map(|item| match item {
            Item::Text(text) => Some(text),
            _ => None,
        })
    }
}
