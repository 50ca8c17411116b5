// Shows how many questions are recovered, while a model goes through them.
const bar = document.querySelector("[data-progress]");

async function look() {
  const answer = await fetch(bar.dataset.progress).then((response) => response.json()).catch(() => null);
  if (!answer) return;
  const { recovered, questions } = answer;
  bar.querySelector("progress").value = recovered;
  const text = `${recovered.toLocaleString("en")} of ${questions.toLocaleString("en")} questions recovered`;
  bar.querySelector("[role=status]").textContent = recovered < questions ? text : `${text}; reload to see them.`;
  if (recovered < questions) setTimeout(look, 2000);
}

if (bar) setTimeout(look, 2000);
