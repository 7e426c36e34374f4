/** What a script may rely on. */
export const EXIT = {
  ok: 0,
  /** It failed, or something was found. */
  failure: 1,
  usage: 2,
  configuration: 3,
  unreachable: 4,
  /** Some of it was done. */
  partial: 5,
  interrupted: 130,
} as const

export type ExitCode = (typeof EXIT)[keyof typeof EXIT]
