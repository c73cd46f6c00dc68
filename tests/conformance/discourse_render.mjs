// Reads posts as a Discourse forum would and says what in them is live: a JSON object a line in, a list of faults a line out.
//
// In: {"post": Markdown, "links": [addresses the server made]}. The parser is markdown-it with HTML and linkify on and
// Discourse's domain endings; mentions, hashtags and BBCode are scanned for by rules written from Discourse's own matchers.
import { createInterface } from "node:readline";
import MarkdownIt from "markdown-it";

const ENDINGS = "com|net|org|io|onion|co|tv|ru|cn|us|uk|me|de|fr|fi|gov|ddd".split("|");
const TAGS = "quote|details|poll|date|date-range|event|url|email|img|code|b|i|u|s|spoiler|blur|wrap|grid|policy|chat|excerpt|hide|tabs|tab".split("|");
const MENTION = /(^|[\s\p{P}\p{S}])@(\w[\w.-]{0,58}\w|\w)/u;
const HASHTAG = /(^|[\s\p{P}\p{S}])#(?!\d+($|[\s\p{P}\p{S}]))([\u00C0-\u1FFF\u2C00-\uD7FF\w:-]{1,101})/u;

function reader(endings) {
  const md = new MarkdownIt({ html: true, linkify: true, breaks: true, typographer: false });
  if (endings) md.linkify.tlds(endings);
  md.validateLink = () => true;
  md.normalizeLink = (url) => url;
  return md;
}

// As a forum has it by default, and as one whose administrators added every ending.
const readers = [reader(ENDINGS), reader(null)];

// Discourse reads BBCode from the raw text, at the start of a line and wherever an inline rule meets a bracket.
function bbcode(md) {
  const found = [];
  const look = (state, silent) => {
    if (state.src[state.pos] !== "[") return false;
    const tag = /^\[\/?([a-z-]+)(?:[\s=][^\]\n]*)?\]/i.exec(state.src.slice(state.pos, state.pos + 400));
    if (tag && TAGS.includes(tag[1].toLowerCase()) && !silent) found.push(tag[0]);
    return false;
  };
  md.inline.ruler.before("link", "bbcode-look", look);
  const block = (state, line) => {
    const start = state.bMarks[line] + state.tShift[line];
    const tag = /^\[([a-z-]+)[\s=\]]/i.exec(state.src.slice(start, state.eMarks[line]));
    if (tag && TAGS.includes(tag[1].toLowerCase())) found.push(tag[0]);
    return false;
  };
  md.block.ruler.after("fence", "bbcode-look", block, { alt: ["paragraph", "reference", "blockquote", "list"] });
  return found;
}
const brackets = readers.map(bbcode);

function faults(post, links) {
  const allowed = new Set(links);
  const found = [];
  readers.forEach((md, index) => {
    brackets[index].length = 0;
    let inLink = false;
    const walk = (token) => {
      if (token.type === "html_block" || token.type === "html_inline") found.push(`html ${token.content}`);
      if (token.type === "image") found.push(`image ${token.attrGet("src")}`);
      if (token.type === "link_open") {
        inLink = true;
        if (!allowed.has(token.attrGet("href")) || token.info === "auto") found.push(`link ${token.attrGet("href")}`);
      }
      if (token.type === "link_close") inLink = false;
      if (token.type === "text") {
        if (MENTION.test(token.content)) found.push(`mention ${token.content}`);
        if (HASHTAG.test(token.content)) found.push(`hashtag ${token.content}`);
        if (/upload:\/\/|:\/\/\S/.test(token.content)) found.push(`address ${token.content}`);
      }
      (token.children || []).forEach(walk);
    };
    md.parse(post, {}).forEach(walk);
    brackets[index].forEach((tag) => found.push(`bbcode ${tag}`));
  });
  return found;
}

for await (const line of createInterface({ input: process.stdin })) {
  const { post, links } = JSON.parse(line);
  process.stdout.write(JSON.stringify(faults(post, links)) + "\n");
}
