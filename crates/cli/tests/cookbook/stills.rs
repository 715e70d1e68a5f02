//! Recipes that read or write pictures.

use super::picture::Picture;
use super::recipe::{Closeness, LOSSY, Recipe};
use super::scene::Scene;
use crate::program::{ends_with, finish};
use crate::video::times;

fn sized(width: usize, height: usize, hour: f64) -> Scene {
    Scene { width, height, hour, time: 0.6 }
}

pub(super) fn a_folder_is_watermarked_and_names_are_kept(recipe: &mut Recipe) {
    let photos = [("day 1.jpg", 320, 180, 7.5), ("noon.jpg", 320, 200, 12.0), ("zurück.jpg", 240, 180, 18.0)];
    let plain =
        photos.map(|(name, width, height, hour)| recipe.photo(sized(width, height, hour), &format!("photos/{name}")));
    // White letters whose alpha is their brightness on black.
    let logo = "pattern kind=solid size=92x26 frames=1 ! text vramp x=4 y=20 size=26 \
                ! colormatrix 0,0,0,0,1,0,0,0,0,1,0,0,0,0,1,1,0,0,0,0 ! png logo.png";
    ends_with(0, finish(recipe.shell(&format!("vramp run -q '{logo}'"))));
    recipe.run();
    assert_eq!(recipe.names("marked"), ["day 1.jpg", "noon.jpg", "zurück.jpg"]);
    for ((name, width, height, _), plain) in photos.into_iter().zip(&plain) {
        let marked = Picture::of(&recipe.path(&format!("marked/{name}")));
        assert_eq!((marked.width, marked.height), (width, height), "{name}");
        let corner = |picture: &Picture| picture.mean(width - 104, height - 38, 92, 26)[1];
        assert!(corner(&marked) > corner(plain) + 20.0, "{name}: the logo is white");
        let rest = |picture: &Picture| picture.mean(0, 0, width, height / 2);
        for (channel, value) in rest(plain).into_iter().enumerate() {
            assert!((rest(&marked)[channel] - value).abs() < 1.5, "{name}: the rest is as before");
        }
    }
    recipe.picture(&Picture::of(&recipe.path("marked/noon.jpg")), LOSSY);
}

pub(super) fn a_folder_of_different_sizes_is_shrunk(recipe: &mut Recipe) {
    for (name, width, hour) in [("a 2.png", 480, 7.5), ("a 10.png", 360, 12.0), ("b.png", 420, 18.0)] {
        recipe.photo(sized(width, 270, hour), &format!("photos/{name}"));
    }
    recipe.run();
    assert_eq!(recipe.names("small"), ["000.png", "001.png", "002.png"]);
    let small = recipe.names("small").into_iter().map(|name| Picture::of(&recipe.path(&format!("small/{name}"))));
    let small: Vec<Picture> = small.collect();
    assert_eq!(small.iter().map(|picture| picture.width).collect::<Vec<_>>(), [160, 120, 140], "2 before 10");
    // Lossless, but `resize` on a GPU may differ from the CPU by one level.
    recipe.picture(&small[0].beside(&small[1]).beside(&small[2]), Closeness::Decibel(46.0));
}

pub(super) fn six_moments_are_in_one_picture_in_order(recipe: &mut Recipe) {
    let clip = recipe.clip("in.mp4");
    recipe.run();
    let sheet = Picture::of(&recipe.path("sheet.png"));
    assert_eq!((sheet.width, sheet.height), (480, 180));
    for moment in 0..6 {
        let cell = sheet.mean(moment % 3 * 160, moment / 3 * 90, 160, 90);
        let nearest = (0..6).min_by_key(|other| {
            let frame = clip[other * 5].mean(0, 0, 320, 180);
            (0..3).map(|channel| (frame[channel] - cell[channel]).abs() * 1e6).sum::<f64>() as u64
        });
        assert_eq!(nearest, Some(moment), "the sky grows darker from cell to cell");
    }
    recipe.picture(&sheet, LOSSY);
}

pub(super) fn photos_become_a_video_in_natural_order(recipe: &mut Recipe) {
    let hour = |number: u32| 5.5 + f64::from(number) * 15.5 / 23.0;
    let shots: Vec<Picture> = (0..24)
        .map(|number| {
            let scene = Scene { width: 240, height: 136, hour: hour(number), time: f64::from(number) / 12.0 };
            recipe.photo(scene, &format!("shots/IMG_{}.jpg", 900 + number * 7))
        })
        .collect();
    recipe.run();
    let frames = recipe.frames("timelapse.mp4");
    assert_eq!(frames.len(), 24);
    for (number, (frame, shot)) in frames.iter().zip(&shots).enumerate() {
        assert!(frame.psnr(shot) > 30.0, "frame {number} is shot {number}: {:.1} dB", frame.psnr(shot));
    }
    let times = times(&recipe.dir, "timelapse.mp4");
    assert!((times[23] - times[0] - 23.0 / 12.0).abs() < 0.01, "twelve frames a second: {times:?}");
    let row = |left: usize, right: usize| frames[left].beside(&frames[right]);
    recipe.picture(&row(2, 9).above(&row(18, 23)), LOSSY);
}
