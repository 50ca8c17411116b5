// Filters the answers that stand in the page, which can be read without this as well.
const form = document.getElementById("filter");
const answers = [...document.querySelectorAll(".record")];
const texts = answers.map((one) => one.textContent.toLowerCase());
const tags = answers.map((one) => JSON.parse(one.dataset.tags));

function filter() {
  const verdict = form.verdict.value, tag = form.tag?.value, text = form.text.value.trim().toLowerCase();
  let shown = 0;
  answers.forEach((one, number) => {
    const fits = (!verdict || one.dataset.verdict === verdict) && (!tag || tags[number].includes(tag)) && texts[number].includes(text);
    one.hidden = !fits;
    shown += fits;
  });
  document.getElementById("shown").textContent = `${shown} of ${answers.length} shown`;
}

form.hidden = false;
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
// Paper has nothing to click.
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
filter();
