/** Starts the page. */
import { render } from "preact";

import "./style.css";
import { App } from "./app.tsx";
import { loadSession } from "./data/api.ts";
import { startClock } from "./data/clock.ts";
import { prefetchFleet } from "./data/fleet.ts";
import { startNavigation } from "./data/location.ts";
import { startStream } from "./data/stream.ts";
import { startTheme } from "./data/theme.ts";

startTheme();
startNavigation();
startClock();
startStream();
prefetchFleet();
void loadSession();
const root = document.getElementById("app");
if (root) render(<App />, root);
