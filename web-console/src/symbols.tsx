/** The shapes of states, drawn once per page. Each state has a shape of its own, so colour alone never tells. */
export function Symbols() {
  return (
    <svg width="0" height="0" aria-hidden="true" class="sr">
      <symbol id="g-done" viewBox="0 0 12 12">
        <circle cx="6" cy="6" r="5.25" fill="currentColor" stroke="none" />
        <path d="M3.6 6.2 5.3 7.9 8.5 4.4" stroke="var(--paper)" stroke-width="1.4" fill="none" />
      </symbol>
      <symbol id="g-run" viewBox="0 0 12 12">
        <circle cx="6" cy="6" r="4.75" />
        <path d="M6 1.25a4.75 4.75 0 0 1 0 9.5z" fill="currentColor" stroke="none" />
      </symbol>
      <symbol id="g-wait" viewBox="0 0 12 12">
        <circle cx="6" cy="6" r="4.75" />
        <path d="M6 3.2V6l1.9 1.4" />
      </symbol>
      <symbol id="g-retry" viewBox="0 0 12 12">
        <path d="M10.6 5.2A4.75 4.75 0 1 0 9.6 9.1" />
        <path d="M11.2 2.2v3.2H8" />
      </symbol>
      <symbol id="g-dead" viewBox="0 0 12 12">
        <rect x=".75" y=".75" width="10.5" height="10.5" rx="1" fill="currentColor" stroke="none" />
        <path d="m3.7 3.7 4.6 4.6m0-4.6L3.7 8.3" stroke="var(--paper)" stroke-width="1.4" />
      </symbol>
      <symbol id="g-skip" viewBox="0 0 12 12">
        <circle cx="6" cy="6" r="4.5" stroke-width="1.2" />
        <path d="M3.4 6h5.2" stroke-width="1.2" />
      </symbol>
      <symbol id="g-pause" viewBox="0 0 12 12">
        <path d="M3.5 1.5v9M8.5 1.5v9" stroke-width="2.4" />
      </symbol>
      <symbol id="g-off" viewBox="0 0 12 12">
        <circle cx="6" cy="6" r="4.75" />
        <path d="m2.8 9.2 6.4-6.4" />
      </symbol>
      <symbol id="g-parked" viewBox="0 0 12 12">
        <path d="M1.5 1v10" stroke-width="2" />
        <circle cx="5.4" cy="6" r="1.5" fill="currentColor" stroke="none" />
        <circle cx="10" cy="6" r="1.5" fill="currentColor" stroke="none" />
      </symbol>
      <symbol id="g-closed" viewBox="0 0 12 12">
        <path d="M0 6h12" stroke-width="1.3" />
        <circle cx="2.4" cy="6" r="1.5" fill="currentColor" stroke="none" />
        <circle cx="9.6" cy="6" r="1.5" fill="currentColor" stroke="none" />
      </symbol>
      <symbol id="g-timer" viewBox="0 0 12 12">
        <circle cx="6" cy="6" r="4.75" stroke-width="1.2" />
        <path d="M6 3.2V6h2.2" stroke-width="1.2" />
      </symbol>
      <symbol id="g-open" viewBox="0 0 12 12">
        <path d="M1.8 9.2 9.4 2.6" stroke-width="1.6" />
        <circle cx="1.8" cy="9.2" r="1.8" fill="currentColor" stroke="none" />
        <circle cx="10.2" cy="9.2" r="1.8" fill="currentColor" stroke="none" />
      </symbol>
      <symbol id="g-probe" viewBox="0 0 12 12">
        <path d="M2.4 6h7.2" stroke-width="1.5" stroke-dasharray="1.5 1.3" />
        <circle cx="1.8" cy="6" r="1.8" fill="currentColor" stroke="none" />
        <circle cx="10.2" cy="6" r="1.8" fill="currentColor" stroke="none" />
      </symbol>
      <symbol id="g-quiet" viewBox="0 0 12 12">
        <circle cx="6" cy="6" r="2" fill="currentColor" stroke="none" />
      </symbol>
      <symbol id="mark" viewBox="0 0 18 18">
        <path d="M2.5 0v18" stroke="currentColor" stroke-width="3.4" fill="none" />
        <path d="M4 4h12M4 9h8M4 14h4" stroke="currentColor" stroke-width="1.5" fill="none" />
        <rect x="14" y="2" width="4" height="4" fill="currentColor" />
        <rect x="10" y="7" width="4" height="4" fill="currentColor" />
        <rect x="6" y="12" width="4" height="4" fill="currentColor" />
      </symbol>
    </svg>
  )
}
