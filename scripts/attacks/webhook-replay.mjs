/** A webhook was captured yesterday. The attacker sends it again to receivers whose settings disarm the age check. */
import { createHmac } from 'node:crypto'
import { verifyWebhook } from 'aftercommit'

export const title = '`verifyWebhook` has a replay window whatever it is given, and takes no id with a dot.'

const key = 'attack-attack-attack-attack-attack'
const secret = `whsec_${Buffer.from(key).toString('base64')}`

export async function run({ hold }) {
  const now = Math.floor(Date.now() / 1_000)
  const old = sign('msg_1', now - 86_400, '{}')
  for (const tolerance of [Number.NaN, Number.POSITIVE_INFINITY, 1e9, '5 minutes', '', null, {}, [], true]) {
    hold(isRefused(old, '{}', { tolerance }), `tolerance ${JSON.stringify(tolerance)} took a webhook of yesterday`)
  }
  for (const tolerance of [undefined, '5m', '90s', '23h']) {
    hold(isRefused(old, '{}', { tolerance }), `tolerance ${tolerance} took a webhook of yesterday`)
    hold(!isRefused(sign('msg_1', now, '{}'), '{}', { tolerance }), `tolerance ${tolerance} refused a fresh webhook`)
  }
  hold(isRefused(old, '{}', { now: new Date(Number.NaN) }), 'an invalid `now` took a webhook of yesterday')

  // The signed text is id.timestamp.body: what was signed as the start of the body is moved into the timestamp.
  const genuine = sign('msg_1', now - 86_400, `${now}.{}`)
  const shifted = { ...genuine, 'webhook-id': `msg_1.${now - 86_400}`, 'webhook-timestamp': String(now) }
  hold(isRefused(shifted, '{}'), 'an id with a dot took a part of the body for the time')
}

function isRefused(headers, body, options) {
  try {
    verifyWebhook(secret, headers, body, options)
    return false
  } catch {
    return true
  }
}

function sign(id, seconds, body) {
  const mac = createHmac('sha256', key).update(`${id}.${seconds}.${body}`).digest('base64')
  return { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': `v1,${mac}` }
}
