// The table of sentences. test/shape/error_words.sh finds a row that no source says any more.
#include "report/error_words.h"

namespace ep {

namespace {

struct Row {
  const char* en;
  const char* zh;
};

constexpr Row kRows[] = {
    {"a bundle is a folder, not an archive", "bundle 是文件夹，不是压缩包"},
    {"a folder is not a log", "这是文件夹，不是日志"},
    {"a later file would override ", "后面的文件会覆盖 "},
    {"another run works in this prefix", "另一次运行正在使用这个前缀目录"},
    {"archive has a member outside its own folder", "压缩包中有成员指向自身目录之外"},
    {"cannot list the folder", "无法列出文件夹"},
    {"cannot list the folder of problems", "无法列出问题目录"},
    {"cannot make the folder", "无法创建文件夹"},
    {"cannot open the host", "无法打开主机描述"},
    {"cannot open the log", "无法打开日志"},
    {"cannot pack the snapshot", "无法打包快照"},
    {"cannot read a data file", "无法读取数据文件"},
    {"cannot read a problem file", "无法读取问题文件"},
    {"cannot read the file", "无法读取文件"},
    {"cannot read the log to its end", "无法把日志读完"},
    {"cannot read the paste", "无法读取粘贴的文本"},
    {"cannot write", "无法写入"},
    {"cannot write the picture", "无法写入图片"},
    {"cannot write the result", "无法写出结果"},
    {"downloaded bytes have another SHA-256", "下载内容的 SHA-256 不符"},
    {"download without a SHA-256 is refused", "拒绝没有 SHA-256 的下载"},
    {"file of the offline folder has another SHA-256", "离线目录中文件的 SHA-256 不符"},
    {"FILE and --resume exclude each other", "FILE 与 --resume 不能同时使用"},
    {"git source without a full commit is refused", "拒绝没有完整提交号的 git 来源"},
    {"installing would remove packages of this host", "安装会删除本机已有的软件包"},
    {"interrupted", "已中断"},
    {"no GPU, no NIC and no link is shown here", "这里没有显示任何 GPU、网卡或链路"},
    {"no plan was begun here", "这里没有开始过任何计划"},
    {"no problem could be loaded", "没有能够加载的问题文件"},
    {"no Python environment here holds torch, NCCL, NVSHMEM or DeepEP",
     "这里没有包含 torch、NCCL、NVSHMEM 或 DeepEP 的 Python 环境"},
    {"no Python environment there", "那里没有 Python 环境"},
    {"no sample is called ", "没有这个名字的样例："},
    {"no such file or folder", "没有这个文件或文件夹"},
    {"no such plan file", "没有这个计划文件"},
    {"no such run", "没有这次运行的记录"},
    {"not a class of consent", "不是一种许可类别"},
    {"not a folder that epready fetch has finished", "不是 epready fetch 已完成的目录"},
    {"not a SHA-256", "不是 SHA-256"},
    {"not a full commit", "不是完整的提交号"},
    {"not a library that can be read", "不是可以读取的库"},
    {"not a plan of this version", "不是本版本的计划"},
    {"not a record of epready bench", "不是 epready bench 的记录"},
    {"not a snapshot", "不是快照"},
    {"not valid TOML", "不是有效的 TOML"},
    {"nothing in this text is known to epready", "这段文本中没有 epready 认识的内容"},
    {"nothing was applied here", "这里没有执行过任何计划"},
    {"packages and wheels can be gathered on the plan's own release only",
     "只能在计划所属的系统版本上收集软件包和 wheel"},
    {"plan of another version", "计划来自另一个版本"},
    {"refused to write through a folder that somebody else controls", "拒绝经由他人控制的文件夹写入"},
    {"signing key has another fingerprint", "签名密钥的指纹不符"},
    {"signing key is pinned by nothing", "签名密钥没有固定的指纹"},
    {"stopped while reading facts", "读取主机信息时被中断"},
    {"stopped while reading hosts", "读取多台主机时被中断"},
    {"the data folder is not there", "数据目录不存在"},
    {"the engine speaks another schema", "引擎使用另一种输出格式"},
    {"the engine was ended from outside: ", "引擎被外部终止："},
    {"the engine's answer is not JSON", "引擎的回答不是 JSON"},
    {"the host has changed since this plan was made", "计划制定之后，主机已发生变化"},
    {"the index offers a wheel with another SHA-256", "索引提供的 wheel 的 SHA-256 不符"},
    {"the lane is not installed here", "本机没有安装这条通路"},
    {"the lock is stale", "锁文件已经过时"},
    {"the log of the test cannot be written", "无法写入测试日志"},
    {"the offline folder does not hold this download", "离线目录中没有这个下载"},
    {"the offline folder does not hold this repository at this commit", "离线目录中没有这个仓库的该提交"},
    {"the offline folder is not there", "离线目录不存在"},
    {"the offline folder lacks what this plan needs; nothing was begun",
     "离线目录缺少此计划所需的内容；没有开始任何操作"},
    {"the package system stayed locked", "软件包系统一直处于锁定状态"},
    {"the pinned key is not in its file", "文件中没有固定的那把密钥"},
    {"the place is taken", "该位置已被占用"},
    {"the plan file is not JSON", "计划文件不是 JSON"},
    {"the plan is a folder, not a file", "计划是文件夹，不是文件"},
    {"the prefix must be an absolute path", "前缀目录必须是绝对路径"},
    {"the repository does not have this commit", "仓库中没有这个提交"},
    {"the snapshot archive is damaged", "快照压缩包已损坏"},
    {"the snapshot is damaged", "快照已损坏"},
    {"the snapshot's manifest is damaged", "快照的清单已损坏"},
    {"this is no snapshot of ours", "这不是 epready 的快照"},
    {"this plan was made for another host", "此计划是为另一台主机制定的"},
    {"too many files for a paste", "作为粘贴文本，文件太多"},
    {"unknown value", "未知的值"},
    {"version range not understood", "无法理解的版本范围"},
    {"this host is a container ", "此主机是容器 "},
    {"this host shows no NVIDIA GPU, so there is nothing to put into it",
     "此主机没有 NVIDIA GPU，没有可放入的内容"},
};

}  // namespace

std::string error_sentence(std::string_view what, Lang lang) {
  const Row* best = nullptr;
  size_t length = 0;
  for (const Row& r : kRows) {
    const std::string_view en = r.en;
    // A sentence is whole, or goes on with a name.
    const bool goes_on = en.back() == ' ' && starts_with(what, en);
    if ((what == en || goes_on) && en.size() > length) best = &r, length = en.size();
  }
  if (lang != Lang::zh || !best) return std::string(what);
  return best->zh + std::string(what.substr(length));
}

std::string error_text(const Error& error, Lang lang) {
  if (lang != Lang::zh) return error.text();
  Error said = error;
  said.what = error_sentence(error.what, lang);
  said.next.clear();
  std::string out = said.text();
  if (!error.next.empty()) out += "\n  下一步: " + error.next;
  return out;
}

}  // namespace ep
