// Reads a file of labels, one JSON object a line, and sends its rows.
const form = document.querySelector(".import");
const status = form.querySelector("[role=status]");

function rowsOf(text) {
  const lines = text.split("\n");
  const rows = [];
  lines.forEach((line, number) => {
    if (!line.trim()) return;
    try {
      rows.push(JSON.parse(line));
    } catch {
      throw new Error(`line ${number + 1} is not JSON; nothing was imported.`);
    }
  });
  return rows;
}

function counted(count, noun) {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

async function ask(path, options) {
  try {
    return await fetch(path, options);
  } catch {
    throw new Error("the server does not answer.");
  }
}

async function importFile(file, annotator) {
  const response = await ask(`/labels/import?annotator=${encodeURIComponent(annotator)}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    body: JSON.stringify(rowsOf(await file.text())),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error.message);
  const others = answer.other_questions + answer.other_pairs;
  const noted = others ? `, ${counted(others, "row")} of other questions or pairs.` : ".";
  return `${counted(answer.labels, "label")} imported${noted}`;
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  status.textContent = "Importing…";
  try {
    status.textContent = await importFile(form.querySelector("[type=file]").files[0], form.elements.annotator.value);
  } catch (error) {
    status.textContent = `Not imported: ${error.message}`;
  }
});
