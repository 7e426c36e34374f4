import type { ResumeToken } from './feed.ts'

export function formatToken(epoch: number, position: bigint): string {
  return `${epoch}.${position}`
}

/** Undefined for what no feed has ever handed out. */
export function parseToken(text: string): ResumeToken | undefined {
  const [, epoch, position] = /^([1-9]\d{0,8})\.(\d{1,19})$/.exec(text) ?? []
  if (epoch === undefined || position === undefined || BigInt(position) > MAX_POSITION) return undefined
  return { epoch: Number(epoch), position: BigInt(position) }
}

const MAX_POSITION = 2n ** 63n - 1n
