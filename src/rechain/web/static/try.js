// A file becomes the text of the field, so that it is read as if it were pasted.
const chooser = document.querySelector(".from-file");
const field = document.querySelector("textarea[name=passages]");
if (chooser) {
  chooser.hidden = false;
  chooser.querySelector("input").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    const status = document.querySelector(".from-file [role=status]");
    if (file.size > Number(chooser.dataset.most)) {
      status.textContent = `${file.name} is too large.`;
      return;
    }
    field.value = await file.text();
    status.textContent = `${file.name} is in the field above.`;
  });
}
