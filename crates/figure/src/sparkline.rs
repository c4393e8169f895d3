//! A run as a small picture without axes, to be placed next to text.

use iolab_analysis::sparkline::{Sparkline, SparklineCurve, SparklinePoint};

use super::scale::{Scale, least_and_most, spans_decades};
use super::scene::{self, Marker};
use super::scene::{Item, Paint, Scene};
use super::svg;

/// Width and height, points.
const SIZE: (f64, f64) = (200.0, 84.0);
/// Margin around the curves, points.
const EDGE: f64 = 6.0;
/// Most curves of a target drawn separately.
const CURVES_MAX: usize = 6;

/// The picture as SVG. `id` begins its ids, which must differ between the figures of one page. If `targets`, all
/// that the page shows, are several, each keeps its colour, dash and marker in all pictures, by its place among
/// them.
pub fn svg(
    outline: &Sparkline,
    targets: &[&str],
    id: &str,
    title: &str,
    description: &str,
) -> String {
    let words = svg::Words {
        id,
        title,
        description,
        unit: outline.response.unit(),
    };
    svg::write(&scene(outline, targets), &words)
}

/// The marker of a target among all of a page, as a letter.
pub fn marker_letter(place: usize) -> char {
    match scene::marker(place) {
        Marker::Circle => '●',
        Marker::Square => '■',
        Marker::Triangle => '▲',
        Marker::Diamond => '◆',
        Marker::TriangleDown => '▼',
        Marker::Cross => '✖',
        Marker::Plus => '✚',
    }
}

/// The custom property of [`style`](crate::style) with the colour of a target among all of a page.
pub fn colour_property(place: usize) -> String {
    format!("--fig-c{}", scene::colour(place))
}

/// The curves that are drawn, each with the index of its look: the target's index if there are several.
fn drawn<'a>(outline: &'a Sparkline, targets: &[&str]) -> Vec<(usize, &'a SparklineCurve)> {
    if targets.len() < 2 {
        let curves = outline.curves.iter().enumerate();
        return curves.take(CURVES_MAX).collect();
    }
    let own = targets.iter().enumerate().flat_map(|(place, target)| {
        let curves = outline.curves.iter();
        let own = curves.filter(move |curve| curve.target == *target);
        own.take(CURVES_MAX).map(move |curve| (place, curve))
    });
    own.collect()
}

fn scene(outline: &Sparkline, targets: &[&str]) -> Scene {
    let (width, height) = SIZE;
    let place = SparklineScale::of(outline);
    let bottom = height - 1.0;
    let mut items = vec![line(
        vec![(0.0, bottom), (width, bottom)],
        1.0,
        "",
        Paint::Grid,
    )];
    for (look, curve) in drawn(outline, targets) {
        // Labels elsewhere distinguish the curves of one target.
        let (marker, dash) = match targets.len() {
            0 | 1 => (Marker::Circle, ""),
            _ => (scene::marker(look), scene::dash(look)),
        };
        let words = match targets.len() {
            0 | 1 => curve.name.clone(),
            _ => format!("{} {}", curve.target, curve.name),
        };
        items.push(Item::Open {
            class: "series",
            series: Some(look),
            data: Vec::new(),
            words: words.trim_end().to_owned(),
        });
        let at = |(level, point): &(usize, SparklinePoint)| (place.x(*level), place.y(point.value));
        for measured in &curve.points {
            let (x, y) = at(measured);
            let point = &measured.1;
            let interval = point.interval;
            items.extend(interval.map(|(low, high)| {
                line(
                    vec![(x, place.y(low)), (x, place.y(high))],
                    1.0,
                    "",
                    Paint::Series,
                )
            }));
            items.push(Item::Mark {
                x,
                y,
                radius: 2.4,
                marker,
                hollow: !point.device,
            });
        }
        if !outline.is_names {
            let points = curve.points.iter().map(at).collect();
            items.push(line(points, 1.6, dash, Paint::Series));
        }
        items.push(Item::Close);
    }
    Scene {
        width,
        height,
        items,
    }
}

fn line(points: Vec<(f64, f64)>, width: f64, dash: &'static str, paint: Paint) -> Item {
    Item::Path {
        class: "",
        points,
        width,
        dash,
        paint,
    }
}

/// Maps levels and values to positions.
struct SparklineScale {
    levels: usize,
    values: Scale,
}

impl SparklineScale {
    fn of(outline: &Sparkline) -> Self {
        let points = outline.curves.iter().flat_map(|curve| &curve.points);
        let values: Vec<f64> = points.map(|(_, point)| point.value).collect();
        let (least, most) = least_and_most(&values);
        Self {
            levels: outline.levels.len(),
            values: match spans_decades(&values, outline.response) {
                true => Scale::Log {
                    low: least,
                    high: most,
                },
                false => Scale::Linear {
                    low: 0.0,
                    high: most,
                },
            },
        }
    }

    fn x(&self, level: usize) -> f64 {
        let steps = self.levels.saturating_sub(1).max(1) as f64;
        EDGE + (SIZE.0 - 2.0 * EDGE) * level as f64 / steps
    }

    fn y(&self, value: f64) -> f64 {
        let share = self.values.share(value).unwrap_or(0.0).clamp(0.0, 1.0);
        SIZE.1 - EDGE - (SIZE.1 - 2.0 * EDGE) * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use iolab_analysis::analysis::Response;

    #[test]
    fn points_stay_inside_and_are_hollow_off_device() {
        let point = |value, device| SparklinePoint {
            value,
            interval: Some((value / 2.0, value * 1e9)),
            device,
        };
        let outline = Sparkline {
            factor: "bs".to_owned(),
            levels: ["4KiB", "8KiB", "16KiB"].map(str::to_owned).to_vec(),
            is_names: false,
            response: Response::Throughput,
            curves: vec![SparklineCurve {
                target: "a".to_owned(),
                name: String::new(),
                points: vec![
                    (0, point(0.0, true)),
                    (1, point(1.0, false)),
                    (2, point(5e3, true)),
                ],
            }],
        };
        let scene = scene(&outline, &["a"]);
        let marks = scene.items.iter().filter_map(|item| match item {
            Item::Mark { x, y, hollow, .. } => Some((*x, *y, *hollow)),
            _ => None,
        });
        let marks: Vec<(f64, f64, bool)> = marks.collect();
        // Zero, undefined on a log axis, is drawn at the bottom.
        let expected = [(6.0, 78.0, false), (100.0, 78.0, true), (194.0, 6.0, false)];
        assert_eq!(marks, expected);
        for item in &scene.items {
            if let Item::Path { points, .. } = item {
                assert!(points.iter().all(|(_, y)| (0.0..=84.0).contains(y)));
            }
        }
        let drawn = svg(&outline, &["a"], "a", "<b>", "c");
        assert!(drawn.contains("<title id=\"a-title\">&lt;b&gt;</title>"));
        // The axis, an interval at each mark, and the curve.
        let lines = |scene: &Scene| {
            let paths = scene.items.iter();
            paths.filter(|i| matches!(i, Item::Path { .. })).count()
        };
        assert_eq!(lines(&scene), 5);
        let names = Sparkline {
            is_names: true,
            ..outline
        };
        assert_eq!(
            lines(&super::scene(&names, &["a"])),
            4,
            "names are not joined"
        );
    }

    #[test]
    fn a_target_looks_the_same_in_every_picture() {
        let curve = |target: &str| SparklineCurve {
            target: target.to_owned(),
            name: String::new(),
            points: Vec::new(),
        };
        let outline = |targets: &[&str]| Sparkline {
            factor: "bs".to_owned(),
            levels: Vec::new(),
            is_names: false,
            response: Response::Throughput,
            curves: targets.iter().map(|target| curve(target)).collect(),
        };
        let looks = |own: &[&str], all: &[&str]| -> Vec<usize> {
            let outline = outline(own);
            drawn(&outline, all).iter().map(|(look, _)| *look).collect()
        };
        assert_eq!(looks(&["a", "b"], &["a", "b"]), [0, 1]);
        assert_eq!(looks(&["b"], &["a", "b"]), [1], "without the other one");
        assert_eq!(looks(&["a", "a"], &["a"]), [0, 1], "curves of one target");
        let many: Vec<&str> = vec!["a"; 9];
        assert_eq!(looks(&many, &["a", "b"]).len(), CURVES_MAX);
        let letters: std::collections::BTreeSet<char> = (0..7).map(marker_letter).collect();
        assert_eq!(letters.len(), 7);
    }
}
