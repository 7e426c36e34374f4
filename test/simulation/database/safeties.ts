/** What guards against a fault, and can be switched off in the simulated database or in a port. */
export const SAFETIES = [
  'save number',
  'term',
  'bound',
  'order of keys',
  'waiting keys',
  'turns of rows',
  'token',
] as const

export type Safety = (typeof SAFETIES)[number]

export function isSafety(name: string): name is Safety {
  return (SAFETIES as readonly string[]).includes(name)
}
