/** The bytes of a request, at most so many and within a time. */
import { AftercommitError } from '../errors.ts'
import { type Clock, withDeadline } from '../runtime/index.ts'
import { Refusal } from './inbound-problem.ts'

export interface BodyLimits {
  readonly maxBytes: number
  readonly timeoutMs: number
}

export async function readBody(request: Request, { maxBytes, timeoutMs }: BodyLimits, clock: Clock): Promise<Buffer> {
  if (Number(request.headers.get('content-length') ?? 0) > maxBytes) throw tooLarge(maxBytes)
  if (request.bodyUsed) throw new BodyUsed()
  if (request.body === null) return Buffer.alloc(0)
  const reader = request.body.getReader()
  const deadline = clock.monotonic() + timeoutMs
  const chunks: Uint8Array[] = []
  let length = 0
  try {
    for (;;) {
      const { done, value } = await withDeadline(reader.read(), deadline - clock.monotonic(), clock, tooSlow)
      if (done) return Buffer.concat(chunks)
      length += value.byteLength
      if (length > maxBytes) throw tooLarge(maxBytes)
      chunks.push(value)
    }
  } catch (error) {
    // Not awaited: a source that does not send may not end either.
    reader.cancel().catch(() => {})
    if (error instanceof Refusal || error instanceof BodyUsed) throw error
    throw new Refusal(400, 'The body broke off before its end.')
  }
}

/** Somebody read the body before us, most likely a parser of the framework. A mistake of the one who runs this server. */
export class BodyUsed extends AftercommitError {
  constructor() {
    super(
      'BAD_STATE',
      'The body of a request was read before the inbound endpoint got it, so nothing was appended. Mount the endpoint ' +
        'before any parser of bodies, or keep the bytes (`express.raw`).',
    )
  }
}

function tooLarge(maxBytes: number): Refusal {
  return new Refusal(413, `The body is larger than ${maxBytes} bytes. Send fewer events at a time.`)
}

function tooSlow(): Refusal {
  return new Refusal(408, 'The body did not arrive in time.')
}
