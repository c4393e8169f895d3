//! The fields of a heat map, and its colour bar.

use super::super::model::Axis;
use super::super::model::{Field, FigureModel, Panel, Ticks};
use super::super::scale::Scale;
use super::super::scene::{Anchor, Frame, Item, Paint, Text};
use super::super::text;
use super::{Canvas, axes};
use crate::scene::{contrast, luminance, shade};

/// Width of the bar of colours, points.
const BAR: f64 = 7.0;
/// Space between the panel and the bar.
const BAR_GAP: f64 = 6.0;
/// Overlap of fields without a label with their neighbours, points.
const SEAM: f64 = 0.2;
/// Number of steps of the bar.
const STEPS: usize = 24;

/// The bar's axis: the same values as the fields.
fn bar_axis(scale: Scale, model: &FigureModel) -> Axis {
    Axis {
        label: model.heat_label.clone(),
        scale,
        ticks: if model.unit == "ns" {
            Ticks::Time
        } else {
            Ticks::Number
        },
    }
}

/// Width of the bar and its labels, right of the panels.
pub(super) fn bar_width(canvas: &Canvas, scale: Scale, model: &FigureModel) -> f64 {
    let size = canvas.sizes.tick;
    let chosen = axes::vertical(&bar_axis(scale, model), size * 14.0, size);
    BAR_GAP + beside_label(&chosen, size) + label_height(size, model)
}

/// Distance from the left side of the bar to its label, points.
fn beside_label(chosen: &axes::AxisTicks, size: f64) -> f64 {
    BAR + axes::TICK + axes::GAP + chosen.width(size).max(size * 2.0)
}

/// Space that the label of the bar takes across, points; 0 without one.
fn label_height(size: f64, model: &FigureModel) -> f64 {
    match model.heat_label.is_empty() {
        true => 0.0,
        false => size * text::LINE_HEIGHT,
    }
}

/// Draws the fields of a panel.
pub(super) fn draw(
    canvas: &mut Canvas,
    frame: Frame,
    panel: &Panel,
    fields: &[Field],
    scale: Scale,
) {
    let along = |axis: &Axis, value| axis.scale.share(value).unwrap_or(0.0).clamp(0.0, 1.0);
    let place_of = |field: &Field| Frame {
        left: frame.left + along(&panel.x, field.x.0) * frame.width(),
        top: frame.bottom - along(&panel.y, field.y.1) * frame.height(),
        right: frame.left + along(&panel.x, field.x.1) * frame.width(),
        bottom: frame.bottom - along(&panel.y, field.y.0) * frame.height(),
    };
    let size = canvas.sizes.small;
    let fits = |field: &Field| {
        let place = place_of(field);
        text::width(&field.label, size) < place.width() - 2.0 && size * 1.1 < place.height()
    };
    let is_named = |field: &Field| !field.label.is_empty();
    let labelled = fields.iter().all(|field| is_named(field) && fits(field));
    for field in fields {
        let colour = shade(scale.share(field.value).unwrap_or(0.0));
        let mut place = place_of(field);
        if !is_named(field) {
            // Neighbours overlap a little: where many narrow ones meet, the background would shine through.
            place.right = (place.right + SEAM).min(frame.right);
            place.top = (place.top - SEAM).max(frame.top);
        }
        draw_field(canvas, field, place, &colour, labelled);
    }
}

fn draw_field(canvas: &mut Canvas, field: &Field, place: Frame, colour: &str, labelled: bool) {
    let origin = &field.origin;
    let mut data = vec![("x", origin.x.clone()), ("value", field.value.to_string())];
    data.extend(origin.cell.map(|cell| ("cell", cell.to_string())));
    data.extend(origin.n.map(|n| ("n", n.to_string())));
    data.push(("verdict", origin.verdict.clone()));
    canvas.group("mark", None, data, &origin.text);
    canvas.items.push(Item::Rectangle {
        class: "field",
        frame: place,
        fill: Paint::Fixed(colour.to_owned()),
        outlined: false,
    });
    // White or black, whichever has more contrast.
    let background = luminance(colour);
    let ink = if contrast(background, 1.0) > contrast(background, 0.0) {
        "#ffffff"
    } else {
        "#1a1a1a"
    };
    let size = canvas.sizes.small;
    let centre = f64::midpoint(place.left, place.right);
    let middle = f64::midpoint(place.top, place.bottom);
    if labelled {
        let baseline = middle + size * text::CAP_HEIGHT / 2.0;
        canvas.painted(
            (centre, baseline),
            size,
            Anchor::Middle,
            Paint::Fixed(ink.to_owned()),
            &*field.label,
        );
    }
    if field.hollow {
        let corner = [
            (place.right - 4.0, place.top + 0.5),
            (place.right - 0.5, place.top + 0.5),
            (place.right - 0.5, place.top + 4.0),
        ];
        canvas.items.push(Item::Area {
            class: "hollow",
            points: corner.to_vec(),
            opacity: 1.0,
            paint: Paint::Fixed(ink.to_owned()),
        });
    }
    canvas.close();
}

/// Draws the bar of colours right of a panel.
pub(super) fn bar(canvas: &mut Canvas, frame: Frame, scale: Scale, model: &FigureModel) {
    let size = canvas.sizes.tick;
    let left = frame.right + BAR_GAP;
    let step = frame.height() / STEPS as f64;
    canvas.open("scale");
    for i in 0..STEPS {
        canvas.items.push(Item::Rectangle {
            class: "",
            frame: Frame {
                left,
                top: frame.bottom - (i + 1) as f64 * step - 0.1,
                right: left + BAR,
                bottom: frame.bottom - i as f64 * step,
            },
            fill: Paint::Fixed(shade((i as f64 + 0.5) / STEPS as f64)),
            outlined: false,
        });
    }
    let chosen = axes::vertical(&bar_axis(scale, model), frame.height(), size);
    if !model.heat_label.is_empty() {
        let (label, label_size) = text::fitted_label(&model.heat_label, size, frame.height());
        canvas.items.push(Item::Text(Text {
            x: left + beside_label(&chosen, size) + size,
            y: f64::midpoint(frame.top, frame.bottom),
            size: label_size,
            anchor: Anchor::Middle,
            upwards: true,
            paint: Paint::Ink,
            text: label,
        }));
    }
    for tick in chosen.ticks {
        let Some(share) = scale.share(tick.at) else {
            continue;
        };
        let y = frame.bottom - share * frame.height();
        let right = left + BAR;
        canvas.ink(&[(right, y), (right + axes::TICK, y)], axes::AXIS_WIDTH);
        let baseline = y + size * text::CAP_HEIGHT / 2.0;
        canvas.text(
            (right + axes::TICK + axes::GAP, baseline),
            size,
            Anchor::Start,
            tick.label,
        );
    }
    canvas.close();
}
