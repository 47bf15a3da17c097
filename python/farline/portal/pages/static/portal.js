"use strict";
// What every page does beyond being read: the one-time login, and folders that open by a click.
(() => {
  const login = document.getElementById("login");
  if (login && location.hash.length > 1) {
    // The token stands behind the #, which no server, log or referrer ever gets.
    login.elements.token.value = decodeURIComponent(location.hash.slice(1));
    history.replaceState(null, "", "/login");
    login.submit();
  }

  const form = document.getElementById("new");
  if (form) {
    const reload = () => {
      const asked = new URLSearchParams();
      for (const [name, value] of new FormData(form)) if (value && name !== "csrf" && name !== "key") asked.set(name, value);
      location.assign(`/transfers/new?${asked}`);
    };
    for (const select of form.querySelectorAll("[data-browse]")) {
      select.addEventListener("change", () => { form.elements[`${select.name}_path`].value = ""; reload(); });
    }
    for (const link of form.querySelectorAll("[data-pane]")) {
      link.addEventListener("click", (event) => {
        event.preventDefault();
        form.elements[`${link.dataset.pane}_path`].value = link.dataset.path;
        if (!("file" in link.dataset)) reload();
      });
    }
  }
  document.body.dataset.ready = "";
})();
