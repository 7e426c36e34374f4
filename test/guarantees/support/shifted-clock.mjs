// Preloaded into a process whose wall clock is wrong: by SHIFT_MS, or by an hour this way and that in turn.
const shift = process.env.SHIFT_MS
const RealDate = Date
const wrong = () => {
  const now = RealDate.now()
  return shift === 'jumping' ? now + (Math.floor(now / 200) % 2 === 0 ? 3_600_000 : -3_600_000) : now + Number(shift)
}

globalThis.Date = class extends RealDate {
  constructor(...given) {
    super(...(given.length === 0 ? [wrong()] : given))
  }

  static now() {
    return wrong()
  }
}
