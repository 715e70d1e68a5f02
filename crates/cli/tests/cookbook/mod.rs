//! Runs docs/cookbook.md: every command as printed, on generated media, compared with the pictures of the page.
//!
//! `VRAMP_COOKBOOK_WRITE=1 cargo nextest run -p vramp-cli -E 'test(cookbook)'` makes the pictures again. Look at them
//! before you commit them.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

mod checks;
mod clips;
mod live;
mod page;
mod picture;
mod recipe;
mod scene;
mod stills;

use std::collections::BTreeSet;

use picture::Picture;
use recipe::Recipe;

/// Declares a test for each recipe, and the list of all titles that have one.
macro_rules! recipes {
    ($($title:literal: $file:ident::$test:ident;)*) => {
        const TESTED: &[&str] = &[$($title),*];

        $(#[test]
        fn $test() {
            let mut recipe = Recipe::open($title, stringify!($test));
            $file::$test(&mut recipe);
            recipe.finish();
        })*
    };
}

recipes! {
    "Watermark a folder of pictures": stills::a_folder_is_watermarked_and_names_are_kept;
    "Shrink a folder of pictures": stills::a_folder_of_different_sizes_is_shrunk;
    "Contact sheet of a video": stills::six_moments_are_in_one_picture_in_order;
    "Timelapse": stills::photos_become_a_video_in_natural_order;
    "Grid of effects": clips::a_grid_has_four_views_and_the_sound;
    "Green screen": clips::an_actor_stands_before_a_background_of_another_size;
    "Before and after with a moving line": clips::a_line_moves_between_before_and_after;
    "Colour table and grain, changed while it runs": live::a_saved_table_and_a_saved_pipeline_reach_the_run;
    "Picture in picture": clips::a_second_video_is_in_the_corner;
    "Hide a part of the picture": clips::only_the_rectangle_is_blurred;
    "Burn in time and frame number": clips::frames_carry_their_numbers;
    "GIF from a video": clips::a_gif_has_half_of_the_frames_and_the_same_speed;
    "Upright video with blurred borders": clips::a_wide_video_is_inside_an_upright_one;
    "Turn a video": clips::a_sideways_video_is_turned;
    "Slow motion": clips::a_third_of_the_speed_takes_three_times_as_long;
    "See what moves": clips::what_moves_is_white_and_the_rest_black;
    "Difference of two encodes": clips::two_encodes_differ_more_the_worse_one_is;
    "Between two ffmpeg commands": clips::frames_pass_between_two_ffmpeg_commands;
    "Record a network stream": live::a_stream_is_recorded_until_ctrl_c;
    "Record a camera": live::a_camera_is_recorded_and_shown_for_two_seconds;
    "Turn a knob while it runs": live::a_line_of_text_changes_a_setting;
    "Find the slow filter": checks::the_slow_filter_is_named_and_mended;
    "Fail in CI if frames leave the GPU": checks::leaving_the_gpu_has_its_exit_codes;
    "Check that CPU and GPU agree": checks::both_sides_give_the_same_pixels;
    "Plan for another machine": checks::the_plan_for_a_phone_is_as_shown;
    "Keep a pipeline in TOML": checks::a_pipeline_in_toml_runs;
}

#[test]
fn every_recipe_of_the_page_has_a_test_and_is_in_its_index() {
    let sections = page::sections();
    let titles: Vec<&String> = sections.iter().map(|section| &section.title).collect();
    assert_eq!(titles, TESTED, "the recipes of the page, in its order, are those with a test");
    let page = page::text();
    for page::Section { title, pictures, .. } in &sections {
        let picture = pictures.first().map(|name| format!("<img src=\"cookbook/{name}\" width=\"180\" alt=\"\"><br>"));
        let entry = format!("| {}[{title}](#{}) |", picture.unwrap_or_default(), page::anchor(title));
        assert!(page.contains(&entry), "the index does not have {entry}");
    }
}

#[test]
fn files_of_the_page_are_shown_and_small() {
    let sections = page::sections();
    let shown: BTreeSet<&String> = sections.iter().flat_map(|section| &section.pictures).collect();
    let texts: Vec<&String> = sections.iter().flat_map(|section| &section.fences).map(|fence| &fence.text).collect();
    let mut bytes = 0;
    for entry in std::fs::read_dir(page::folder()).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        if entry.path().extension().is_some_and(|end| end == "png") {
            assert!(shown.contains(&name), "no recipe shows {name}");
            let size = entry.metadata().unwrap().len();
            assert!(size < 60_000, "{name} has {size} bytes");
            bytes += size;
        } else {
            let text = std::fs::read_to_string(entry.path()).unwrap();
            assert!(texts.contains(&&text), "no recipe shows the text of {name}");
        }
    }
    assert!(bytes < 700_000, "the pictures have {bytes} bytes");
}

/// The comparison of pictures finds what recipes do: a plain frame of the clip is none of the stored pictures.
#[test]
fn pictures_of_the_page_are_told_apart() {
    let plain = (0..30).map(|number| scene::Scene::at(16.0 + f64::from(number) / 30.0, f64::from(number) / 15.0));
    let plain: Vec<Picture> =
        plain.map(|scene| Picture::new(recipe::WIDTH, recipe::HEIGHT, scene.landscape())).collect();
    let names: BTreeSet<String> = page::sections().into_iter().flat_map(|section| section.pictures).collect();
    let stored: Vec<(String, Picture)> =
        names.into_iter().map(|name| (name.clone(), Picture::of(&page::folder().join(name)))).collect();
    for (at, (name, picture)) in stored.iter().enumerate() {
        let same_size = |other: &&Picture| (other.width, other.height) == (picture.width, picture.height);
        let others = stored[at + 1..].iter().map(|(_, other)| other).chain(&plain);
        for other in others.filter(same_size) {
            assert!(picture.psnr(other) < 27.0, "{name} is like another picture: {:.1} dB", picture.psnr(other));
        }
    }
}
