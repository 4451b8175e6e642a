// The operator's words. Without the operator's key there is no button.

export class Controls {
  constructor(button, notice) {
    this.button = button;
    this.notice = notice;
    this.allowed = false;
    button.addEventListener("click", () => this.send());
  }

  may(allowed) {
    this.allowed = allowed;
  }

  show(state) {
    this.paused = state.paused;
    this.button.hidden = !this.allowed || state.over || state.stopped;
    const label = state.paused ? "Resume" : "Pause";
    if (this.button.textContent !== label) this.button.textContent = label;
    this.button.title = state.paused ? "Let all peers train on" : "Hold all peers before their next step; exchanges go on";
  }

  async send() {
    this.button.disabled = true;
    try {
      const answer = await fetch("api/control", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ action: this.paused ? "resume" : "pause", reason: "asked for on the dashboard" }),
      });
      const said = await answer.json().catch(() => ({}));
      this.notice(answer.ok ? "" : `The run has not heard it: ${said.error ?? answer.status}`);
    } catch {
      this.notice("The peer does not answer; the run has not heard it.");
    } finally {
      this.button.disabled = false;
    }
  }
}
