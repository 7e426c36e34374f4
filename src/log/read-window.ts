/**
 * How many positions one read of the log covers. A filter that lets through one event in 100,000 needs wide windows, or
 * catching up is a round trip per 10,000 positions. A filter that lets everything through needs narrow ones: the server may
 * choose a plan that reads all of a window before it answers. So the window follows the density of what was found.
 */
import { SQLSTATE, sqlstateOf } from '../postgres/index.ts'

export interface ReadWindow {
  readonly positions: bigint
  /** Upper bound. A read that the server cancelled lowers it; later reads raise it step by step. */
  readonly most: bigint
}

/** One partition of the default size: a read beyond it would take seconds on a slow disk. */
const WIDEST = 1_000_000n
const NARROWEST = 10n

export const FIRST_WINDOW: ReadWindow = { positions: 10_000n, most: WIDEST }

export interface WindowRead {
  /** Positions that the read went through: fewer than the window at the end of the log and when the page was full. */
  readonly covered: bigint
  readonly found: number
  readonly limit: number
}

/** The window after a read: twice what a full page needs at the density found, at most four times wider than before. */
export function afterRead({ positions, most }: ReadWindow, { covered, found, limit }: WindowRead): ReadWindow {
  const ceiling = least(most + (most >> 3n) + 1n, WIDEST)
  // The end of the log cut an empty read short: it says too little about the density.
  if (found === 0 && covered < positions) return { positions: least(positions, ceiling), most: ceiling }
  const wanted = found === 0 ? positions * 4n : (2n * covered * BigInt(limit)) / BigInt(found)
  return { positions: clamp(least(wanted, positions * 4n), ceiling), most: ceiling }
}

/** The window after a read that the server cancelled because it took too long; undefined for every other failure. */
export function afterFailure(window: ReadWindow, error: unknown): ReadWindow | undefined {
  return sqlstateOf(error) === SQLSTATE.queryCanceled ? afterTimeout(window) : undefined
}

/** The window after a read that took longer than the server allows; undefined when it cannot be narrower. */
export function afterTimeout({ positions }: ReadWindow): ReadWindow | undefined {
  if (positions <= NARROWEST) return undefined
  const narrower = clamp(positions / 4n, WIDEST)
  return { positions: narrower, most: narrower }
}

function clamp(positions: bigint, ceiling: bigint): bigint {
  return positions < NARROWEST ? NARROWEST : least(positions, ceiling)
}

function least(a: bigint, b: bigint): bigint {
  return a < b ? a : b
}
