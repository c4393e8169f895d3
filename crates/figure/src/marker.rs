//! The shapes of points, as outlines.

use super::palette::Marker;

/// Corners of a marker around its centre, in units of its radius; `None` for the circle. The areas are about equal, so
/// that no series looks more important than another.
pub(super) fn corners(marker: Marker) -> Option<&'static [(f64, f64)]> {
    const SQUARE: [(f64, f64); 4] = [(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)];
    const TRIANGLE: [(f64, f64); 3] = [(0.0, -1.25), (1.15, 0.8), (-1.15, 0.8)];
    const TRIANGLE_DOWN: [(f64, f64); 3] = [(0.0, 1.25), (1.15, -0.8), (-1.15, -0.8)];
    const DIAMOND: [(f64, f64); 4] = [(0.0, -1.3), (1.2, 0.0), (0.0, 1.3), (-1.2, 0.0)];
    const PLUS: [(f64, f64); 12] = [
        (-0.4, -1.2),
        (0.4, -1.2),
        (0.4, -0.4),
        (1.2, -0.4),
        (1.2, 0.4),
        (0.4, 0.4),
        (0.4, 1.2),
        (-0.4, 1.2),
        (-0.4, 0.4),
        (-1.2, 0.4),
        (-1.2, -0.4),
        (-0.4, -0.4),
    ];
    // The plus, turned by 45 degrees.
    const CROSS: [(f64, f64); 12] = [
        (0.57, -1.13),
        (1.13, -0.57),
        (0.57, 0.0),
        (1.13, 0.57),
        (0.57, 1.13),
        (0.0, 0.57),
        (-0.57, 1.13),
        (-1.13, 0.57),
        (-0.57, 0.0),
        (-1.13, -0.57),
        (-0.57, -1.13),
        (0.0, -0.57),
    ];
    match marker {
        Marker::Circle => None,
        Marker::Square => Some(&SQUARE),
        Marker::Triangle => Some(&TRIANGLE),
        Marker::Diamond => Some(&DIAMOND),
        Marker::TriangleDown => Some(&TRIANGLE_DOWN),
        Marker::Cross => Some(&CROSS),
        Marker::Plus => Some(&PLUS),
    }
}
