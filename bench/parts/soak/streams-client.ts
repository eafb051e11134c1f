/** Reads many streams and prints a line for each one that breaks or skips a number. Reads its settings from standard input. */
interface Settings {
  readonly url: string;
  readonly streams: number;
  readonly tls: { readonly ca: string; readonly cert: string; readonly key: string };
}

const settings = (await Bun.stdin.json()) as Settings;
await Promise.all(Array.from({ length: settings.streams }, (_, index) => read(index)));

async function read(index: number): Promise<void> {
  let expected = 0;
  try {
    const response = await fetch(settings.url, { tls: settings.tls });
    let rest = "";
    for await (const chunk of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
      const parts = (rest + chunk).split("\n");
      rest = parts.pop() ?? "";
      for (const line of parts) {
        const { sequence } = JSON.parse(line) as { sequence: number };
        if (sequence !== expected) console.log(`stream ${index}: got line ${sequence}, expected ${expected}`);
        expected = sequence + 1;
      }
    }
  } catch (error) {
    console.log(`stream ${index} broke after ${expected} lines: ${String(error)}`);
  }
}
