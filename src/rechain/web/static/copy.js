// Buttons that copy a text of the page, or its address. Browsers have a clipboard for scripts on safe connections
// alone; elsewhere a selection is copied, as with Ctrl+C.
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelection(text);
  }
}

function copySelection(text) {
  const field = document.createElement("textarea");
  field.className = "hidden";
  field.value = text;
  document.body.append(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  return isCopied;
}

for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  const name = button.textContent;
  button.addEventListener("click", async () => {
    const source = button.dataset.copy ? document.querySelector(button.dataset.copy) : null;
    const isCopied = await copyText(source ? source.textContent : location.href);
    button.textContent = isCopied ? "Copied" : "Not copied: select it and press Ctrl+C";
    button.focus();
    setTimeout(() => { button.textContent = name; }, 2000);
  });
}
