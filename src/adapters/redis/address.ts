import { hash } from 'node:crypto'
import { AftercommitError } from '../../errors.ts'

/** Checked here, because the error of a URL that cannot be read quotes it, password and all. */
export function checkAddress(url: unknown, what: string): string {
  const isAddress = typeof url === 'string' && /^rediss?:\/\/\S+$/.test(url) && URL.canParse(url)
  if (isAddress) return url
  throw new AftercommitError(
    'BAD_OPTION',
    `${what} needs a \`url\` like redis://user:password@host:6379/0, or rediss:// for TLS, so it was not made.`,
  )
}

export function checkChannel(channel: unknown, what: string): string {
  if (typeof channel === 'string' && /^[^\p{Cc}]{1,200}$/u.test(channel)) return channel
  throw new AftercommitError('BAD_OPTION', `${what} needs a \`channel\` of 1 to 200 characters, so it was not made.`)
}

/** Where word of events goes unless told otherwise. */
export function channelOf(schema: string): string {
  return `aftercommit:${schema}:events`
}

/** The subscription that publishes to a channel. A hash stands for a channel that an id cannot hold. */
export function subscriptionIdOf(channel: string): string {
  return `redis:${/^[\w:.-]{1,190}$/.test(channel) ? channel : hash('sha256', channel, 'hex')}`
}

/** Beside the channel: which message was the last. */
export function lastKeyOf(channel: string): string {
  return `${channel}:last`
}
