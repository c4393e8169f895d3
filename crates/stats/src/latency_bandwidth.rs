//! A model of the time of a request: a fixed cost plus a cost per byte.

use schemars::JsonSchema;
use serde::Serialize;

/// The model `T(s) = t0 + s / bandwidth`, fitted to times of requests.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct LatencyBandwidth {
    /// Fixed cost of a request, in the unit of the times; at least 0.
    pub t0: f64,
    /// Rate approached by ever larger requests, in units of size per unit of time.
    pub bandwidth: f64,
    /// Size at which half of that rate is reached, `t0 * bandwidth`, in the unit of the sizes.
    pub n_half: f64,
    /// Greatest `|T(s) / T - 1|` of the points.
    pub relative_error_max: f64,
}

/// Fits `T(s) = t0 + s / B` by least squares of the relative error.
///
/// It minimises `sum((t0 u_i + b v_i - 1)^2)` with `u = 1/T`, `v = s/T`, `b = 1/B`. The weights are thus
/// `1/T^2`, and small and large sizes count alike. The solution has a closed form: `b` from the part of `v`
/// that is orthogonal to `u`, then `t0`. When that gives `t0 < 0`, `t0` is set to 0 and `b = sum(v) /
/// sum(v^2)`, the minimum under `t0 >= 0`. The fit assumes a spread proportional to the time, and the same
/// mechanism at all sizes; the relative errors tell when that fails. Source: Hockney, "The communication
/// challenge for MPP: Intel Paragon and Meiko CS-2", Parallel Computing 20 (1994) 389-398, for the model and
/// `n1/2`.
///
/// `None` when the slices differ in length, with fewer than two different sizes, or when a size or a time is
/// not positive and finite. `None` also when the times do not grow with the size (no finite bandwidth), when a
/// result overflows, or when a bandwidth vanishes.
pub fn fit_latency_bandwidth(sizes: &[f64], times: &[f64]) -> Option<LatencyBandwidth> {
    let positive = |x: &f64| *x > 0.0 && x.is_finite();
    if sizes.len() != times.len() || !sizes.iter().chain(times).all(positive) {
        return None;
    }
    if sizes.iter().all(|s| *s == sizes[0]) {
        return None;
    }
    let (s_unit, t_unit) = (greatest(sizes), greatest(times));
    let inverse: Vec<f64> = times.iter().map(|t| t_unit / t).collect();
    let rate: Vec<f64> = sizes
        .iter()
        .zip(&inverse)
        .map(|(s, u)| s / s_unit * u)
        .collect();
    let (t0, b) = least_squares(&inverse, &rate)?;
    let relative: Vec<f64> = inverse
        .iter()
        .zip(&rate)
        .map(|(u, v)| t0 * u + b * v - 1.0)
        .collect();
    let fit = LatencyBandwidth {
        t0: t0 * t_unit,
        bandwidth: s_unit / t_unit / b,
        n_half: t0 / b * s_unit,
        relative_error_max: relative.iter().fold(0.0, |max, e| e.abs().max(max)),
    };
    let all = [fit.t0, fit.bandwidth, fit.n_half, fit.relative_error_max];
    let sound = fit.bandwidth > 0.0 && all.iter().all(|x| x.is_finite());
    sound.then_some(fit)
}

fn greatest(data: &[f64]) -> f64 {
    data.iter().copied().fold(0.0, f64::max)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `t0 >= 0` and `b > 0` that minimise `sum((t0 u + b v - 1)^2)`; `None` when `b` is not positive.
fn least_squares(u: &[f64], v: &[f64]) -> Option<(f64, f64)> {
    let along = dot(u, v) / dot(u, u);
    let rest: Vec<f64> = u.iter().zip(v).map(|(u, v)| v - along * u).collect();
    let level = u.iter().sum::<f64>() / dot(u, u);
    // The residual of 1 after `u`; projecting this instead of 1 keeps precision.
    let left: Vec<f64> = u.iter().map(|u| 1.0 - level * u).collect();
    let b = dot(&rest, &left) / dot(&rest, &rest);
    if !(b > 0.0 && b.is_finite()) {
        return None;
    }
    let t0 = level - b * along;
    if t0 >= 0.0 {
        Some((t0, b))
    } else {
        Some((0.0, v.iter().sum::<f64>() / dot(v, v)))
    }
}
