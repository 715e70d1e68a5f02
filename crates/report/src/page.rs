//! [`Page`]: what a page is about, and the order of its sections.
//!
//! Invariants: the page has no address of another file. The same values give the same bytes.

use vramp_plan::Plan;
use vramp_runtime::Report;

use crate::markup::Markup;
use crate::recorder::RunRecord;
use crate::units::units;
use crate::{data, section};

/// A plan or a run as an HTML page.
#[derive(Debug, Clone)]
pub struct Page {
    pub(crate) title: String,
    pub(crate) plan: Plan,
    pub(crate) run: Option<RunPart>,
    pub(crate) pipeline: Option<String>,
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) problems: Vec<String>,
    pub(crate) notes: Vec<String>,
}

#[derive(Debug, Clone)]
pub(crate) struct RunPart {
    pub(crate) report: Report,
    pub(crate) record: RunRecord,
}

impl Page {
    pub fn of_plan(plan: &Plan) -> Page {
        Page {
            title: "vramp plan".to_owned(),
            plan: plan.clone(),
            run: None,
            pipeline: None,
            facts: Vec::new(),
            problems: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// A page about a run. The plan is that of the graph that ran last.
    pub fn of_run(plan: &Plan, report: &Report, record: RunRecord) -> Page {
        let run = Some(RunPart { report: report.clone(), record });
        Page { title: "vramp run".to_owned(), run, ..Page::of_plan(plan) }
    }

    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Page {
        self.title = title.into();
        self
    }

    /// The pipeline as it was written.
    #[must_use]
    pub fn pipeline(mut self, text: impl Into<String>) -> Page {
        self.pipeline = Some(text.into());
        self
    }

    /// Adds a fact about the machine or the run, such as the version of a driver.
    #[must_use]
    pub fn fact(mut self, name: impl Into<String>, value: impl Into<String>) -> Page {
        self.facts.push((name.into(), value.into()));
        self
    }

    /// Adds why the run failed, was interrupted, or exceeded a budget.
    #[must_use]
    pub fn problem(mut self, words: impl Into<String>) -> Page {
        self.problems.push(words.into());
        self
    }

    /// Adds what readers should know, but what is not a problem.
    #[must_use]
    pub fn note(mut self, words: impl Into<String>) -> Page {
        self.notes.push(words.into());
        self
    }

    /// The data of the page as one line of JSON. The page carries the same text.
    pub fn to_json(&self) -> String {
        data::json(self)
    }

    /// The whole page.
    pub fn to_html(&self) -> String {
        let run = self.run.as_ref();
        let (report, record) = (run.map(|run| &run.report), run.map(|run| &run.record));
        let units = units(&self.plan, report, record.map(|record| &record.distributions));
        let mut page = Markup::default();
        page.literal("<!doctype html>\n");
        page.element("html", &[("lang", "en"), ("class", "vramp-document")], |page| {
            page.element("head", &[], |page| {
                page.empty("meta", &[("charset", "utf-8")]);
                page.empty("meta", &[("name", "viewport"), ("content", "width=device-width, initial-scale=1")]);
                page.words("title", &[], &self.title);
                page.element("style", &[], |page| page.literal(include_str!("page/style.css")));
            });
            page.line();
            page.element("body", &[], |page| {
                page.element("div", &[("class", "vramp-page")], |page| {
                    section::head::write(page, self);
                    page.element("main", &[], |page| {
                        section::graph::write(page, self, &units);
                        section::times::write(page, self, &units);
                        if let Some(run) = run {
                            section::over_time::write(page, run);
                            section::frames::write(page, &run.record.timeline);
                            section::losses::write(page, run);
                        }
                        section::details::write(page, self);
                    });
                    section::head::write_foot(page);
                    let attributes = [("type", "application/json"), ("id", "vramp-data"), ("class", "vramp-data")];
                    page.json(&attributes, &self.to_json());
                    page.line();
                    page.element("script", &[], |page| page.literal(include_str!("page/script.js")));
                });
            });
        });
        page.line();
        page.finish()
    }
}
