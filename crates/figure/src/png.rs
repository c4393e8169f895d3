//! Writes a scene as PNG.

use iolab_workload::escape_control::escape_control;
use iolab_workload::{Error, Result};
use tiny_skia::{
    Color, FillRule, LineJoin, Paint, Path, PathBuilder, Pixmap, PremultipliedColorU8, StrokeDash,
    Transform,
};
use ttf_parser::OutlineBuilder;

use super::scene::{Scene, Text};
use super::shapes::{Colour, Drawn, Segment, Stroke, drawn};
use super::text;

/// Most pixels of a picture: 400 MB in memory.
const PIXELS_MAX: f64 = 1e8;
/// Points of an inch.
const POINTS_PER_INCH: f64 = 72.0;

/// Draws a scene with this resolution, pixels per inch.
///
/// # Errors
///
/// Of kind [`Usage`](iolab_workload::Kind::Usage) when it would have too many pixels, of kind
/// [`Failed`](iolab_workload::Kind::Failed) when it cannot be written.
pub(super) fn png(scene: &Scene, dpi: f64) -> Result<Vec<u8>> {
    let scale = dpi / POINTS_PER_INCH;
    let [width, height] =
        [scene.width, scene.height].map(|points| (points * scale).round().max(1.0));
    let too_large = || {
        Error::usage(format!(
            "a picture of {width} by {height} pixels is too large"
        ))
        .hint("choose a smaller size, or write SVG or PDF")
    };
    if !(width * height).is_finite() || width * height > PIXELS_MAX {
        return Err(too_large());
    }
    let mut pixels = Pixmap::new(width as u32, height as u32).ok_or_else(too_large)?;
    // Pixels beyond the figure's edge are paper.
    pixels.fill(Color::WHITE);
    let scale = Transform::from_scale(scale as f32, scale as f32);
    for item in drawn(scene) {
        match item {
            Drawn::Shape {
                outline,
                fill,
                stroke,
            } => {
                let path = path(&outline);
                paint(&mut pixels, path.as_ref(), fill, stroke.as_ref(), scale);
            }
            Drawn::Text(text, colour) => {
                let path = letters(text);
                paint(&mut pixels, path.as_ref(), Some(colour), None, scale);
            }
        }
    }
    encode(&pixels, dpi)
        .map_err(|error| Error::failed(format!("the figure cannot be written: {error}")))
}

/// Fills an outline and draws a line along it; does nothing for an empty one.
fn paint(
    pixels: &mut Pixmap,
    path: Option<&Path>,
    fill: Option<Colour>,
    stroke: Option<&Stroke>,
    scale: Transform,
) {
    let Some(path) = path else { return };
    let ink = |colour: Colour| {
        let [r, g, b] = colour.rgb;
        let mut paint = Paint {
            anti_alias: true,
            ..Paint::default()
        };
        paint.set_color_rgba8(r, g, b, (colour.opacity * 255.0).round() as u8);
        paint
    };
    if let Some(colour) = fill {
        pixels.fill_path(path, &ink(colour), FillRule::Winding, scale, None);
    }
    if let Some(stroke) = stroke {
        let dashes = stroke.dashes.iter().map(|length| *length as f32).collect();
        let line = tiny_skia::Stroke {
            width: stroke.width as f32,
            line_join: LineJoin::Round,
            dash: StrokeDash::new(dashes, 0.0),
            ..tiny_skia::Stroke::default()
        };
        pixels.stroke_path(path, &ink(stroke.colour), &line, scale, None);
    }
}

fn path(outline: &[Segment]) -> Option<Path> {
    let mut path = PathBuilder::new();
    let at = |(x, y): (f64, f64)| (x as f32, y as f32);
    for segment in outline {
        match *segment {
            Segment::Move(to) => path.move_to(at(to).0, at(to).1),
            Segment::Line(to) => path.line_to(at(to).0, at(to).1),
            Segment::Curve(points) => {
                let [(x1, y1), (x2, y2), (x, y)] = points.map(at);
                path.cubic_to(x1, y1, x2, y2, x, y);
            }
            Segment::Close => path.close(),
        }
    }
    path.finish()
}

/// The outlines of the letters of a text, in position.
fn letters(text: &Text) -> Option<Path> {
    let mut letters = Letters {
        path: PathBuilder::new(),
        start: text.start(),
        upwards: text.upwards,
        scale: text.size / text::units_per_em(),
        advance: 0.0,
    };
    for glyph in text::glyphs(&escape_control(&text.text)) {
        text::outline(glyph.id, &mut letters);
        letters.advance += glyph.advance * text.size;
    }
    letters.path.finish()
}

/// Receives outlines in units of the font, upwards from the baseline.
struct Letters {
    path: PathBuilder,
    start: (f64, f64),
    upwards: bool,
    /// Points per unit of the font.
    scale: f64,
    /// Distance of the letter from the start of the text, points.
    advance: f64,
}

impl Letters {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        let along = self.advance + f64::from(x) * self.scale;
        let above = f64::from(y) * self.scale;
        let (x, y) = self.start;
        let (x, y) = match self.upwards {
            true => (x - above, y - along),
            false => (x + along, y - above),
        };
        (x as f32, y as f32)
    }
}

impl OutlineBuilder for Letters {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.place(x1, y1), self.place(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let [(x1, y1), (x2, y2), (x, y)] =
            [(x1, y1), (x2, y2), (x, y)].map(|(x, y)| self.place(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

/// Three channels, since the paper is opaque.
fn encode(pixels: &Pixmap, dpi: f64) -> std::result::Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, pixels.width(), pixels.height());
    encoder.set_color(png::ColorType::Rgb);
    let per_metre = (dpi / 0.0254).round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions {
        xppu: per_metre,
        yppu: per_metre,
        unit: png::Unit::Meter,
    }));
    let channels = |pixel: &PremultipliedColorU8| [pixel.red(), pixel.green(), pixel.blue()];
    let data: Vec<u8> = pixels.pixels().iter().flat_map(channels).collect();
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&data)?;
    writer.finish()?;
    Ok(bytes)
}
