//! The factor that lowers a default fraction for a model with a vision tower.

use super::Vision;

/// How much of the fraction is left for a vision tower: 0.95 for a ViT-L/14 (24 layers of 1024), less for a larger one,
/// between 0.76 and 0.9975 (`adjust_mem_fraction_for_vlm`, 0.4.10 and later; not rounded).
pub fn vision_factor(vision: Vision) -> f64 {
    let score = |layers: f64, hidden: f64| layers * (hidden * hidden);
    let complexity = score(vision.layers as f64, vision.hidden_size as f64) / score(24.0, 1024.0);
    let adjustment = (1.0 - 0.1 * (complexity - 1.0)).clamp(0.8, 1.05);
    0.95 * adjustment
}

#[cfg(test)]
mod tests {
    use super::*;

    fn factor(layers: u64, hidden_size: u64) -> f64 {
        vision_factor(Vision { layers, hidden_size })
    }

    #[test]
    fn larger_towers_leave_less() {
        assert_eq!(factor(24, 1024), 0.95);
        assert!((factor(32, 1280) - 0.847_083_3).abs() < 1e-6);
        assert!((factor(45, 3200) - 0.76).abs() < 1e-12, "clamped");
        assert!((factor(1, 1) - 0.9975).abs() < 1e-12, "clamped from above at most");
    }

    #[test]
    fn golden_fractions_of_the_tower_sizes() {
        for (layers, hidden, expected) in [(24, 1024, 0.8303), (32, 1280, 0.740_351), (45, 3200, 0.66424)] {
            assert!((0.874 * factor(layers, hidden) - expected).abs() < 1e-6);
        }
    }
}
