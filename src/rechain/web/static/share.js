// A button that copies the address of the page.
"use strict";
const share = document.querySelector(".share");
if (share && navigator.clipboard) {
  share.hidden = false;
  share.addEventListener("click", async () => {
    await navigator.clipboard.writeText(location.href);
    share.textContent = "Copied";
  });
}
