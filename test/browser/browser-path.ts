/** Debian's Chromium without the user interface of the browser, which would take more CPU time than the pages. */
export const browserPath = "/usr/bin/chromium-headless-shell";
