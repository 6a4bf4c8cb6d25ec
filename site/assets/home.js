// The example on the first page: its answers were computed when the site was built, one for each place of the slider.
"use strict";
{
  const slider = document.getElementById("example-slider"), shown = document.getElementById("example"), said = document.getElementById("example-value");
  const states = [...document.querySelectorAll("template[data-value]")];
  const show = () => {
    const state = states[Number(slider.value)];
    shown.replaceChildren(state.content.cloneNode(true));
    said.textContent = state.dataset.value;
    slider.setAttribute("aria-valuetext", state.dataset.value);
  };
  slider.addEventListener("input", show);
  slider.disabled = false;
}
